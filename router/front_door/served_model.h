#ifndef BATON_ROUTER_FRONT_DOOR_SERVED_MODEL_H_
#define BATON_ROUTER_FRONT_DOOR_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "router/front_door/prompt_builder.h"

namespace baton::router {

// What a router needs of a model: its text side.
struct ServedModel {
  std::string name;             // general.name, or the file's name
  uint32_t context_tokens = 0;  // as trained; at least 2
  std::unique_ptr<const PromptBuilder> prompts;
};

// Reads metadata, tokenizer and chat template of a GGUF file, no weights. A
// file without a template, or with one that is not supported, serves text and
// token ids only; that is logged. Other errors are those of GgufFile and
// Tokenizer.
absl::StatusOr<ServedModel> LoadServedModel(const std::string& path);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_SERVED_MODEL_H_
