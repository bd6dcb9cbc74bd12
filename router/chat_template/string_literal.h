#ifndef BATON_ROUTER_CHAT_TEMPLATE_STRING_LITERAL_H_
#define BATON_ROUTER_CHAT_TEMPLATE_STRING_LITERAL_H_

#include <string>
#include <string_view>

namespace baton::router {

// Python's escapes of a string literal without its quotes; unknown ones keep
// their backslash. False for a truncated \x, \u or \U and for values that are
// no Unicode scalar.
bool DecodeStringLiteral(std::string_view source, std::string* decoded);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_STRING_LITERAL_H_
