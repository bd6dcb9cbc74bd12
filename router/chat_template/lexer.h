#ifndef BATON_ROUTER_CHAT_TEMPLATE_LEXER_H_
#define BATON_ROUTER_CHAT_TEMPLATE_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::router {

struct TemplateToken {
  enum class Kind : uint8_t {
    kText,           // text: verbatim output
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,   // text: decoded
    kInteger,  // integer
    kFloat,    // real
    kOperator,
    kEnd,
  };

  Kind kind = Kind::kEnd;
  std::string text;
  int64_t integer = 0;
  double real = 0;
  int line = 1;
};

// INVALID_ARGUMENT `chat_template:LINE: what`.
absl::Status TemplateError(int line, std::string_view what);

// Cuts a template into tokens as jinja2 3.1 does with trim_blocks and
// lstrip_blocks: a newline after a block or comment goes, white space before
// one at the start of a line goes, `-` strips all white space, `+` keeps it;
// comments vanish, raw blocks become text, line ends become \n and one at the
// very end goes. The last token is kEnd. Requires valid UTF-8.
absl::StatusOr<std::vector<TemplateToken>> LexTemplate(std::string_view source);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_LEXER_H_
