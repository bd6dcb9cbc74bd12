#include "router/front_door/served_model.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/gguf.h"
#include "common/telemetry/log.h"

namespace baton::router {
namespace {

std::unique_ptr<const ChatTemplate> LoadTemplate(const GgufFile& file) {
  const auto source = file.String("tokenizer.chat_template");
  if (!source.ok()) {
    log::Warn("{}: no chat template; chat requests will be refused",
              file.path());
    return nullptr;
  }
  auto parsed = ChatTemplate::Parse(*source);
  if (!parsed.ok()) {
    log::Warn("{}: chat requests will be refused: {}", file.path(),
              ToStd(parsed.status().message()));
    return nullptr;
  }
  return *std::move(parsed);
}

}  // namespace

absl::StatusOr<ServedModel> LoadServedModel(const std::string& path) {
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file,
                         GgufFile::Open(path));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                         Tokenizer::FromGguf(*file));
  ServedModel model;
  const auto name = file->String("general.name");
  model.name = name.ok() && !name->empty()
                   ? std::string(*name)
                   : std::filesystem::path(path).stem().string();
  BATON_ASSIGN_OR_RETURN(const std::string_view architecture,
                         file->String("general.architecture"));
  const std::string key = StrCat(architecture, ".context_length");
  BATON_ASSIGN_OR_RETURN(const uint64_t context, file->Unsigned(key));
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (context < 2 || context > kMost) {
    return absl::InvalidArgumentError(StrCat(path, ": ", key,
                                             ": out of range (got ", context,
                                             ", allowed 2..", kMost, ")"));
  }
  model.context_tokens = static_cast<uint32_t>(context);
  model.prompts = std::make_unique<PromptBuilder>(std::move(tokenizer),
                                                  LoadTemplate(*file));
  return model;
}

}  // namespace baton::router
