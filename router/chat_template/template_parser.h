#ifndef BATON_ROUTER_CHAT_TEMPLATE_TEMPLATE_PARSER_H_
#define BATON_ROUTER_CHAT_TEMPLATE_TEMPLATE_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "router/chat_template/chat_template.h"
#include "router/chat_template/syntax_tree.h"

namespace baton::router {

// A template's source as a tree. INVALID_ARGUMENT `chat_template:LINE: what`.
absl::StatusOr<Body> ParseTemplate(std::string_view source,
                                   const ChatTemplateLimits& limits);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_TEMPLATE_PARSER_H_
