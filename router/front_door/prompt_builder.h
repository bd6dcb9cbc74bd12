#ifndef BATON_ROUTER_FRONT_DOOR_PROMPT_BUILDER_H_
#define BATON_ROUTER_FRONT_DOOR_PROMPT_BUILDER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tokenizer/tokenizer.h"
#include "proto/generation.pb.h"
#include "router/chat_template/chat_template.h"
#include "router/front_door/field_errors.h"

namespace baton::router {

struct ChatPrompt {
  std::vector<TokenId> tokens;
  std::string rendered;
};

// Turns what clients send into token ids. Immutable, thread-safe.
class PromptBuilder {
 public:
  static constexpr size_t kMaxPromptBytes = 4 << 20;
  static constexpr int kMaxMessages = 4096;

  // `chat` may be null: the model has no template.
  PromptBuilder(std::unique_ptr<const Tokenizer> tokenizer,
                std::unique_ptr<const ChatTemplate> chat);

  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // All three: errors are added under `field` and the result is then empty or
  // partial.
  std::vector<TokenId> FromText(std::string_view field, std::string_view text,
                                const EncodeOptions& options,
                                FieldErrors* errors) const;
  std::vector<TokenId> FromIds(
      std::string_view field,
      const google::protobuf::RepeatedField<uint32_t>& ids,
      FieldErrors* errors) const;
  // `escape_special`: special-token strings in contents stay plain text.
  ChatPrompt FromChat(std::string_view field, const v1::ChatMessages& chat,
                      bool escape_special, FieldErrors* errors) const;

 private:
  bool CheckText(std::string_view field, std::string_view text,
                 FieldErrors* errors) const;
  bool CheckChat(std::string_view field, const v1::ChatMessages& chat,
                 FieldErrors* errors) const;

  const std::unique_ptr<const Tokenizer> tokenizer_;
  const std::unique_ptr<const ChatTemplate> chat_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_PROMPT_BUILDER_H_
