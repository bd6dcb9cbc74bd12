#ifndef BATON_ROUTER_CHAT_TEMPLATE_TOKEN_STREAM_H_
#define BATON_ROUTER_CHAT_TEMPLATE_TOKEN_STREAM_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/strings.h"
#include "router/chat_template/lexer.h"

namespace baton::router {

// The tokens of a template, consumed from front to back, with the nesting of
// the parsers that read them. The last token, kEnd, is never consumed.
class TokenStream {
 public:
  using Kind = TemplateToken::Kind;

  TokenStream(std::vector<TemplateToken> tokens, int max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  const TemplateToken& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const TemplateToken& Take() {
    const TemplateToken& token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  int line() const { return Peek().line; }

  bool At(Kind kind, std::string_view text) const {
    return Peek().kind == kind && Peek().text == text;
  }
  bool AtOperator(std::string_view op) const { return At(Kind::kOperator, op); }
  bool AtName(std::string_view name) const { return At(Kind::kName, name); }
  bool TakeOperator(std::string_view op) {
    return AtOperator(op) && (Take(), true);
  }
  bool TakeName(std::string_view name) {
    return AtName(name) && (Take(), true);
  }

  absl::Status Expect(Kind kind, std::string_view what) {
    if (Peek().kind != kind) return Unexpected(what);
    Take();
    return absl::OkStatus();
  }
  absl::Status ExpectOperator(std::string_view op) {
    return TakeOperator(op) ? absl::OkStatus()
                            : Unexpected(StrCat("'", op, "'"));
  }
  absl::Status Unexpected(std::string_view wanted) const {
    return TemplateError(line(),
                         StrCat("expected ", wanted, ", got ", Shown()));
  }

  // Each successful Enter needs a Leave.
  absl::Status Enter() {
    if (depth_ >= max_depth_) {
      return TemplateError(line(), StrCat("nested deeper than ", max_depth_));
    }
    ++depth_;
    return absl::OkStatus();
  }
  void Leave() { --depth_; }

 private:
  std::string Shown() const {
    switch (Peek().kind) {
      case Kind::kEnd:
        return "the end of the template";
      case Kind::kText:
        return "text";
      case Kind::kVariableBegin:
        return "'{{'";
      case Kind::kVariableEnd:
        return "'}}'";
      case Kind::kBlockBegin:
        return "'{%'";
      case Kind::kBlockEnd:
        return "'%}'";
      default:
        return StrCat("'", Peek().text.substr(0, 40), "'");
    }
  }

  std::vector<TemplateToken> tokens_;
  size_t at_ = 0;
  const int max_depth_;
  int depth_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_TOKEN_STREAM_H_
