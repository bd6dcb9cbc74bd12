#include "router/front_door/prompt_builder.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "router/chat_template/tokenize_chat.h"

namespace baton::router {
namespace {

constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
constexpr std::string_view kRoleNames = "system, user, assistant, tool";

std::string TokenText(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id.has_value() ? std::string(tokenizer.TokenBytes(*id)) : "";
}

}  // namespace

PromptBuilder::PromptBuilder(std::unique_ptr<const Tokenizer> tokenizer,
                             std::unique_ptr<const ChatTemplate> chat)
    : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

std::vector<TokenId> PromptBuilder::FromText(std::string_view field,
                                             std::string_view text,
                                             const EncodeOptions& options,
                                             FieldErrors* errors) const {
  if (!CheckText(field, text, errors)) return {};
  absl::StatusOr<std::vector<TokenId>> tokens =
      tokenizer_->Encode(text, options);
  if (!tokens.ok()) {
    errors->Add(field, ToStd(tokens.status().message()));
    return {};
  }
  return *std::move(tokens);
}

std::vector<TokenId> PromptBuilder::FromIds(
    std::string_view field,
    const google::protobuf::RepeatedField<uint32_t>& ids,
    FieldErrors* errors) const {
  const size_t vocabulary = tokenizer_->vocabulary_size();
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary) {
      errors->Add(StrCat(field, "[", i, "]"), "outside the vocabulary",
                  StrCat(ids[i]), StrCat("0..", vocabulary - 1));
    }
  }
  return {ids.begin(), ids.end()};
}

ChatPrompt PromptBuilder::FromChat(std::string_view field,
                                   const v1::ChatMessages& chat,
                                   bool escape_special,
                                   FieldErrors* errors) const {
  if (!CheckChat(field, chat, errors)) return {};
  std::vector<ChatTurn> turns;
  for (const v1::ChatMessage& message : chat.messages()) {
    turns.push_back({message.role(), message.content()});
  }
  ChatRenderOptions options;
  if (chat.has_add_generation_prompt()) {
    options.add_generation_prompt = chat.add_generation_prompt();
  }
  options.bos_token = TokenText(*tokenizer_, tokenizer_->bos());
  options.eos_token = TokenText(*tokenizer_, tokenizer_->eos());
  absl::StatusOr<std::vector<RenderedPiece>> pieces =
      chat_->Render(turns, options);
  if (!pieces.ok()) {
    errors->Add(field, ToStd(pieces.status().message()));
    return {};
  }
  absl::StatusOr<std::vector<TokenId>> tokens =
      TokenizeRendered(*tokenizer_, *pieces, escape_special);
  if (!tokens.ok()) {
    errors->Add(field, ToStd(tokens.status().message()));
    return {};
  }
  return {*std::move(tokens), JoinRendered(*pieces)};
}

bool PromptBuilder::CheckText(std::string_view field, std::string_view text,
                              FieldErrors* errors) const {
  if (text.size() > kMaxPromptBytes) {
    errors->Add(field, "too long", StrCat(text.size(), " bytes"),
                StrCat(kMaxPromptBytes));
    return false;
  }
  if (const std::optional<size_t> at = FindInvalidUtf8(text)) {
    errors->Add(field, StrCat("invalid UTF-8 at byte ", *at));
    return false;
  }
  return true;
}

bool PromptBuilder::CheckChat(std::string_view field,
                              const v1::ChatMessages& chat,
                              FieldErrors* errors) const {
  if (chat_ == nullptr) {
    errors->Add(field, "the model has no chat template; use text or token_ids");
    return false;
  }
  const std::string list = StrCat(field, ".messages");
  if (chat.messages_size() == 0 || chat.messages_size() > kMaxMessages) {
    errors->Add(list, "wrong number of messages", StrCat(chat.messages_size()),
                StrCat("1..", kMaxMessages));
    return false;
  }
  bool good = true;
  size_t bytes = 0;
  for (int i = 0; i < chat.messages_size(); ++i) {
    const v1::ChatMessage& message = chat.messages(i);
    const std::string name = StrCat(list, "[", i, "]");
    if (std::find(std::begin(kRoles), std::end(kRoles), message.role()) ==
        std::end(kRoles)) {
      errors->Add(StrCat(name, ".role"), "unknown", Quoted(message.role()),
                  kRoleNames);
      good = false;
    } else if (i == 0 && message.role() == "tool") {
      errors->Add(StrCat(name, ".role"), "a tool cannot speak first", "tool",
                  "system, user, assistant");
      good = false;
    }
    good =
        CheckText(StrCat(name, ".content"), message.content(), errors) && good;
    bytes += message.content().size();
  }
  if (good && bytes > kMaxPromptBytes) {
    errors->Add(list, "too long", StrCat(bytes, " bytes"),
                StrCat(kMaxPromptBytes));
    good = false;
  }
  return good;
}

}  // namespace baton::router
