#include "router/chat_template/chat_template.h"

#include <utility>

#include "common/base/status_macros.h"
#include "router/chat_template/interpreter.h"
#include "router/chat_template/template_parser.h"

namespace baton::router {
namespace {

Value Messages(absl::Span<const ChatTurn> turns) {
  ValueList messages;
  for (const ChatTurn& turn : turns) {
    messages.emplace_back(
        ValueEntries{{Value::String("role"), Value::String(turn.role)},
                     {Value::String("content"),
                      Value(MarkedText(turn.content, /*from_user=*/true))}});
  }
  return Value(std::move(messages));
}

}  // namespace

struct ChatTemplate::Impl {
  ChatTemplateLimits limits;
  Body body;
};

ChatTemplate::ChatTemplate() : impl_(std::make_unique<Impl>()) {}
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(
    std::string_view source, ChatTemplateLimits limits) {
  std::unique_ptr<ChatTemplate> parsed(new ChatTemplate());
  parsed->impl_->limits = limits;
  BATON_ASSIGN_OR_RETURN(parsed->impl_->body, ParseTemplate(source, limits));
  return parsed;
}

absl::StatusOr<std::vector<RenderedPiece>> ChatTemplate::Render(
    absl::Span<const ChatTurn> messages,
    const ChatRenderOptions& options) const {
  // `tools` and `documents` are there and none, as transformers passes them.
  const Interpreter::Globals globals = {
      {"messages", Messages(messages)},
      {"add_generation_prompt", Value(options.add_generation_prompt)},
      {"bos_token", Value::String(options.bos_token)},
      {"eos_token", Value::String(options.eos_token)},
      {"tools", Value()},
      {"documents", Value()},
  };
  BATON_ASSIGN_OR_RETURN(const MarkedText text,
                         Interpreter(impl_->limits).Run(impl_->body, globals));
  return text.Pieces();
}

}  // namespace baton::router
