#include "router/chat_template/template_parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "router/chat_template/expression_parser.h"
#include "router/chat_template/token_stream.h"

namespace baton::router {
namespace {

using Kind = TemplateToken::Kind;
using EndTags = std::initializer_list<std::string_view>;

class TemplateParser {
 public:
  explicit TemplateParser(TokenStream& tokens)
      : tokens_(tokens), expressions_(tokens) {}

  absl::StatusOr<Body> Parse() {
    BATON_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    return body;
  }

 private:
  // Reads up to a block whose name is one of `ends`; the name and `{%` are
  // consumed. Without `ends` reads the whole template.
  absl::StatusOr<Body> ParseBody(EndTags ends) {
    BATON_RETURN_IF_ERROR(tokens_.Enter());
    absl::Cleanup leave = [this] { tokens_.Leave(); };
    Body body;
    while (true) {
      const int line = tokens_.line();
      switch (tokens_.Peek().kind) {
        case Kind::kText:
          body.push_back({line, TextStatement{tokens_.Take().text}});
          break;
        case Kind::kVariableBegin: {
          tokens_.Take();
          BATON_ASSIGN_OR_RETURN(ExpressionPointer value,
                                 expressions_.ParseTuple());
          BATON_RETURN_IF_ERROR(tokens_.Expect(Kind::kVariableEnd, "'}}'"));
          body.push_back({line, PrintStatement{std::move(value)}});
          break;
        }
        case Kind::kBlockBegin: {
          tokens_.Take();
          if (tokens_.Peek().kind != Kind::kName) {
            return tokens_.Unexpected("a tag name");
          }
          end_tag_ = tokens_.Take().text;
          if (std::find(ends.begin(), ends.end(), end_tag_) != ends.end()) {
            return body;
          }
          BATON_RETURN_IF_ERROR(ParseTag(std::string(end_tag_), line, &body));
          break;
        }
        default:
          if (ends.size() == 0) return body;
          return tokens_.Unexpected(StrCat("'", *(ends.end() - 1), "'"));
      }
    }
  }

  // The end tag closes with nothing but perhaps a name in it.
  absl::StatusOr<Body> ParseBodyTo(std::string_view end) {
    BATON_ASSIGN_OR_RETURN(Body body, ParseBody({end}));
    BATON_RETURN_IF_ERROR(EndBlock());
    return body;
  }

  absl::Status EndBlock() { return tokens_.Expect(Kind::kBlockEnd, "'%}'"); }

  absl::Status ParseTag(const std::string& tag, int line, Body* body) {
    if (tag == "if") return ParseIf(line, body);
    if (tag == "for") return ParseFor(line, body);
    if (tag == "set") return ParseSet(line, body);
    if (tag == "macro") return ParseMacro(line, body);
    if (tag == "filter") return ParseFilterBlock(line, body);
    if (tag == "generation") {
      BATON_RETURN_IF_ERROR(EndBlock());
      BATON_ASSIGN_OR_RETURN(Body inner, ParseBodyTo("endgeneration"));
      body->push_back({line, GroupStatement{std::move(inner)}});
      return absl::OkStatus();
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) {
        return TemplateError(line, StrCat("'", tag, "' outside a loop"));
      }
      if (tag == "break") {
        body->push_back({line, BreakStatement{}});
      } else {
        body->push_back({line, ContinueStatement{}});
      }
      return EndBlock();
    }
    return TemplateError(line, StrCat("unknown or misplaced tag '", tag, "'"));
  }

  absl::Status ParseIf(int line, Body* body) {
    IfStatement statement;
    while (true) {
      IfStatement::Branch branch;
      if (end_tag_ != "else") {
        BATON_ASSIGN_OR_RETURN(branch.test, expressions_.ParseTuple());
      }
      BATON_RETURN_IF_ERROR(EndBlock());
      const bool last = branch.test == nullptr;
      BATON_ASSIGN_OR_RETURN(
          branch.body,
          last ? ParseBody({"endif"}) : ParseBody({"elif", "else", "endif"}));
      statement.branches.push_back(std::move(branch));
      if (end_tag_ == "endif") break;
    }
    BATON_RETURN_IF_ERROR(EndBlock());
    body->push_back({line, std::move(statement)});
    return absl::OkStatus();
  }

  absl::Status ParseFor(int line, Body* body) {
    ForStatement statement;
    const bool parenthesised = tokens_.TakeOperator("(");
    do {
      BATON_ASSIGN_OR_RETURN(std::string name, TakeTargetName());
      statement.targets.push_back(std::move(name));
    } while (tokens_.TakeOperator(","));
    if (parenthesised) BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    if (!tokens_.TakeName("in")) return tokens_.Unexpected("'in'");
    BATON_ASSIGN_OR_RETURN(statement.iterable, expressions_.ParseTuple(false));
    if (tokens_.TakeName("if")) {
      BATON_ASSIGN_OR_RETURN(statement.filter, expressions_.Parse());
    }
    if (tokens_.AtName("recursive")) {
      return TemplateError(line, "recursive loops are not supported");
    }
    BATON_RETURN_IF_ERROR(EndBlock());
    ++loops_;
    BATON_ASSIGN_OR_RETURN(statement.body, ParseBody({"else", "endfor"}));
    --loops_;
    if (end_tag_ == "else") {
      BATON_RETURN_IF_ERROR(EndBlock());
      BATON_ASSIGN_OR_RETURN(statement.otherwise, ParseBody({"endfor"}));
    }
    BATON_RETURN_IF_ERROR(EndBlock());
    body->push_back({line, std::move(statement)});
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> TakeTargetName() {
    static constexpr std::string_view kReserved[] = {
        "true", "false", "none", "True", "False", "None", "loop",
        "in",   "if",    "else", "and",  "or",    "not",  "is"};
    if (tokens_.Peek().kind != Kind::kName) return tokens_.Unexpected("a name");
    if (std::find(std::begin(kReserved), std::end(kReserved),
                  tokens_.Peek().text) != std::end(kReserved)) {
      return tokens_.Unexpected("a name to assign");
    }
    return tokens_.Take().text;
  }

  absl::Status ParseSet(int line, Body* body) {
    std::vector<SetTarget> targets;
    do {
      SetTarget target;
      BATON_ASSIGN_OR_RETURN(target.name, TakeTargetName());
      if (tokens_.TakeOperator(".")) {
        if (tokens_.Peek().kind != Kind::kName) {
          return tokens_.Unexpected("an attribute");
        }
        target.attribute = tokens_.Take().text;
      }
      targets.push_back(std::move(target));
    } while (tokens_.TakeOperator(","));
    if (tokens_.TakeOperator("=")) {
      BATON_ASSIGN_OR_RETURN(ExpressionPointer value,
                             expressions_.ParseTuple());
      BATON_RETURN_IF_ERROR(EndBlock());
      body->push_back(
          {line, SetStatement{std::move(targets), std::move(value)}});
      return absl::OkStatus();
    }
    if (targets.size() != 1) return tokens_.Unexpected("'='");
    CaptureStatement capture;
    capture.target = std::move(targets[0]);
    if (tokens_.TakeOperator("|")) {
      BATON_ASSIGN_OR_RETURN(capture.filters, expressions_.ParseFilters());
    }
    BATON_RETURN_IF_ERROR(EndBlock());
    BATON_ASSIGN_OR_RETURN(capture.body, ParseBodyTo("endset"));
    body->push_back({line, std::move(capture)});
    return absl::OkStatus();
  }

  absl::Status ParseFilterBlock(int line, Body* body) {
    FilterStatement statement;
    BATON_ASSIGN_OR_RETURN(statement.filters, expressions_.ParseFilters());
    BATON_RETURN_IF_ERROR(EndBlock());
    BATON_ASSIGN_OR_RETURN(statement.body, ParseBodyTo("endfilter"));
    body->push_back({line, std::move(statement)});
    return absl::OkStatus();
  }

  absl::Status ParseMacro(int line, Body* body) {
    MacroStatement macro;
    BATON_ASSIGN_OR_RETURN(macro.name, TakeTargetName());
    BATON_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
    while (!tokens_.TakeOperator(")")) {
      if (!macro.parameters.empty()) {
        BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
        if (tokens_.TakeOperator(")")) break;
      }
      MacroStatement::Parameter parameter;
      BATON_ASSIGN_OR_RETURN(parameter.name, TakeTargetName());
      if (tokens_.TakeOperator("=")) {
        BATON_ASSIGN_OR_RETURN(parameter.otherwise, expressions_.Parse());
      }
      macro.parameters.push_back(std::move(parameter));
    }
    BATON_RETURN_IF_ERROR(EndBlock());
    const int outer_loops = std::exchange(loops_, 0);
    BATON_ASSIGN_OR_RETURN(macro.body, ParseBody({"endmacro"}));
    loops_ = outer_loops;
    if (tokens_.AtName(macro.name)) tokens_.Take();
    BATON_RETURN_IF_ERROR(EndBlock());
    body->push_back({line, std::move(macro)});
    return absl::OkStatus();
  }

  TokenStream& tokens_;
  ExpressionParser expressions_;
  std::string end_tag_;
  int loops_ = 0;
};

}  // namespace

absl::StatusOr<Body> ParseTemplate(std::string_view source,
                                   const ChatTemplateLimits& limits) {
  if (const std::optional<size_t> at = FindInvalidUtf8(source)) {
    const int line = 1 + static_cast<int>(std::count(
                             source.begin(), source.begin() + *at, '\n'));
    return TemplateError(line, StrCat("invalid UTF-8 at byte ", *at));
  }
  BATON_ASSIGN_OR_RETURN(std::vector<TemplateToken> lexed, LexTemplate(source));
  TokenStream tokens(std::move(lexed), limits.max_depth);
  return TemplateParser(tokens).Parse();
}

}  // namespace baton::router
