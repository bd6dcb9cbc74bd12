#include "router/chat_template/lexer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/python_text.h"
#include "router/chat_template/string_literal.h"

namespace baton::router {
namespace {

using Kind = TemplateToken::Kind;

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string NormalisedLineEnds(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source)
      : storage_(NormalisedLineEnds(source)), source_(storage_) {}

  absl::StatusOr<std::vector<TemplateToken>> Run() {
    while (at_ < source_.size()) {
      const size_t open = FindOpening(at_);
      if (open == std::string_view::npos) {
        EmitText(source_.substr(at_));
        break;
      }
      BATON_RETURN_IF_ERROR(LexTag(open));
    }
    Emit(Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  size_t FindOpening(size_t from) const {
    for (size_t at = source_.find('{', from); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return std::string_view::npos;
  }

  absl::Status LexTag(size_t open) {
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    EmitText(Stripped(source_.substr(at_, open - at_), kind, sign));
    line_ = LineOf(open);
    at_ = open + 2;
    if (sign == '-' || sign == '+') ++at_;
    if (kind == '#') return SkipComment();
    if (kind == '%') {
      const size_t raw_end = TagEnd(at_, "raw");
      if (raw_end != std::string_view::npos) return LexRaw(raw_end);
    }
    Emit(kind == '{' ? Kind::kVariableBegin : Kind::kBlockBegin, "");
    return LexExpression(kind == '{');
  }

  std::string_view Stripped(std::string_view text, char kind, char sign) const {
    if (sign == '-') return StripRight(text);
    if (sign == '+' || kind == '{') return text;
    const size_t line_start = text.rfind('\n') + 1;  // npos + 1 == 0
    const bool starts_line = line_start > 0 || at_line_start_;
    const bool blank = StripLeft(text.substr(line_start)).empty();
    return starts_line && blank ? text.substr(0, line_start) : text;
  }

  absl::Status SkipComment() {
    const size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) {
      return TemplateError(line_, "comment is not closed");
    }
    // Within `{#-#}` or `{#+#}` the sign belongs to the opening.
    const char sign = close > at_ ? source_[close - 1] : '\0';
    CloseTag(close + 2, sign, /*trims_newline=*/true);
    return absl::OkStatus();
  }

  // Where the tag ends when only `word` is left of it, else npos.
  size_t TagEnd(size_t from, std::string_view word) const {
    const auto skip_spaces = [&] {
      while (from < source_.size() && IsSpace(source_[from])) ++from;
    };
    skip_spaces();
    if (!source_.substr(from).starts_with(word)) return std::string_view::npos;
    from += word.size();
    skip_spaces();
    for (const std::string_view end : {"%}", "-%}", "+%}"}) {
      if (source_.substr(from).starts_with(end)) return from + end.size();
    }
    return std::string_view::npos;
  }

  absl::Status LexRaw(size_t begin) {
    CloseTag(begin, source_[begin - 3], /*trims_newline=*/false);
    for (size_t open = source_.find("{%", at_); open != std::string_view::npos;
         open = source_.find("{%", open + 2)) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      const size_t name = open + (sign == '-' || sign == '+' ? 3 : 2);
      const size_t end = TagEnd(name, "endraw");
      if (end == std::string_view::npos) continue;
      at_line_start_ = at_ > 0 && source_[at_ - 1] == '\n';
      EmitText(Stripped(source_.substr(at_, open - at_), '%', sign));
      CloseTag(end, source_[end - 3], /*trims_newline=*/true);
      return absl::OkStatus();
    }
    return TemplateError(line_, "raw block is not closed");
  }

  // `end` is behind the closing braces, `sign` what stood before them.
  void CloseTag(size_t end, char sign, bool trims_newline) {
    at_ = end;
    if (sign == '-') {
      const std::string_view rest = source_.substr(at_);
      at_ += rest.size() - StripLeft(rest).size();
    } else if (sign != '+' && trims_newline && at_ < source_.size() &&
               source_[at_] == '\n') {
      ++at_;
    }
    at_line_start_ = source_[at_ - 1] == '\n';
  }

  absl::Status LexExpression(bool variable) {
    const std::string_view closing = variable ? "}}" : "%}";
    std::string brackets;
    while (true) {
      while (at_ < source_.size() && IsSpace(source_[at_])) ++at_;
      if (at_ >= source_.size()) {
        return TemplateError(
            line_, variable ? "'{{' is not closed" : "'{%' is not closed");
      }
      line_ = LineOf(at_);
      if (brackets.empty()) {
        const std::string_view rest = source_.substr(at_);
        const char sign =
            rest[0] == '-' || (rest[0] == '+' && !variable) ? rest[0] : '\0';
        const size_t skip = sign != '\0' ? 1 : 0;
        if (rest.substr(skip).starts_with(closing)) {
          Emit(variable ? Kind::kVariableEnd : Kind::kBlockEnd, "");
          CloseTag(at_ + skip + 2, sign, !variable);
          return absl::OkStatus();
        }
      }
      BATON_RETURN_IF_ERROR(LexToken(&brackets));
    }
  }

  absl::Status LexToken(std::string* brackets) {
    const char c = source_[at_];
    if (IsNameStart(c)) {
      size_t end = at_;
      while (end < source_.size() &&
             (IsNameStart(source_[end]) || IsDigit(source_[end]))) {
        ++end;
      }
      Emit(Kind::kName, source_.substr(at_, end - at_));
      at_ = end;
      return absl::OkStatus();
    }
    if (IsDigit(c)) return LexNumber();
    if (c == '\'' || c == '"') return LexString(c);
    return LexOperator(brackets);
  }

  absl::Status LexNumber() {
    size_t end = at_;
    const auto skip_digits = [&] {
      while (end < source_.size() &&
             (IsDigit(source_[end]) || source_[end] == '_')) {
        ++end;
      }
    };
    const auto digit_at = [&](size_t i) {
      return i < source_.size() && IsDigit(source_[i]);
    };
    skip_digits();
    bool real = false;
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      real = true;
      ++end;
      skip_digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool has_sign =
          end + 1 < source_.size() &&
          (source_[end + 1] == '-' || source_[end + 1] == '+');
      if (digit_at(end + (has_sign ? 2 : 1))) {
        real = true;
        end += has_sign ? 2 : 1;
        skip_digits();
      }
    }
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    TemplateToken& token = Emit(real ? Kind::kFloat : Kind::kInteger, digits);
    const char* last = digits.data() + digits.size();
    const auto result =
        real ? std::from_chars(digits.data(), last, token.real)
             : std::from_chars(digits.data(), last, token.integer);
    if (result.ec != std::errc() || result.ptr != last) {
      return TemplateError(line_, StrCat("number out of range: ", digits));
    }
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status LexString(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      return TemplateError(line_, "string is not closed");
    }
    std::string decoded;
    if (!DecodeStringLiteral(source_.substr(at_ + 1, end - at_ - 1),
                             &decoded)) {
      return TemplateError(line_, "bad escape in string");
    }
    Emit(Kind::kString, decoded);
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status LexOperator(std::string* brackets) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(",
        ")",  "[",  "]",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const std::string_view rest = source_.substr(at_);
    for (const std::string_view op : kOperators) {
      if (!rest.starts_with(op)) continue;
      if (op == "(" || op == "[" || op == "{") {
        *brackets += op == "(" ? ')' : op == "[" ? ']' : '}';
      } else if (op == ")" || op == "]" || op == "}") {
        if (brackets->empty() || brackets->back() != op[0]) {
          return TemplateError(line_, StrCat("unexpected '", op, "'"));
        }
        brackets->pop_back();
      }
      Emit(Kind::kOperator, op);
      at_ += op.size();
      return absl::OkStatus();
    }
    return TemplateError(line_, "unexpected character");
  }

  void EmitText(std::string_view text) {
    if (!text.empty()) {
      line_ = LineOf(at_);
      Emit(Kind::kText, text);
    }
  }

  TemplateToken& Emit(Kind kind, std::string_view text) {
    TemplateToken token;
    token.kind = kind;
    token.text = std::string(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  // Calls come with growing positions.
  int LineOf(size_t position) {
    counted_line_ += static_cast<int>(std::count(
        source_.begin() + counted_, source_.begin() + position, '\n'));
    counted_ = position;
    return counted_line_;
  }

  const std::string storage_;
  const std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  size_t counted_ = 0;
  int counted_line_ = 1;
  bool at_line_start_ = true;
  std::vector<TemplateToken> tokens_;
};

}  // namespace

absl::Status TemplateError(int line, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("chat_template:", line, ": ", what));
}

absl::StatusOr<std::vector<TemplateToken>> LexTemplate(
    std::string_view source) {
  return Lexer(source).Run();
}

}  // namespace baton::router
