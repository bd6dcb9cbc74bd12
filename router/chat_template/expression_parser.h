#ifndef BATON_ROUTER_CHAT_TEMPLATE_EXPRESSION_PARSER_H_
#define BATON_ROUTER_CHAT_TEMPLATE_EXPRESSION_PARSER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "router/chat_template/syntax_tree.h"
#include "router/chat_template/token_stream.h"

namespace baton::router {

// Jinja's expression grammar (jinja2/parser.py). Reads as many tokens as
// belong to the expression. Unknown filters and tests are errors here, before
// anything is rendered.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  absl::StatusOr<ExpressionPointer> Parse();
  // As Parse, but `if` is left alone: what a for statement iterates over.
  absl::StatusOr<ExpressionPointer> ParseWithoutConditional();
  // Parse, or a list where commas follow: {{ a, b }}.
  absl::StatusOr<ExpressionPointer> ParseTuple(bool with_conditional = true);
  // name(arguments)|name...
  absl::StatusOr<std::vector<FilterSuffix>> ParseFilters();

 private:
  using Parsed = absl::StatusOr<ExpressionPointer>;
  using Level = Parsed (ExpressionParser::*)();

  Parsed ParseConditional();
  Parsed ParseOr();
  Parsed ParseAnd();
  Parsed ParseNot();
  Parsed ParseComparison();
  Parsed ParseSum();
  Parsed ParseConcatenation();
  Parsed ParseProduct();
  Parsed ParsePower();
  Parsed ParseUnary(bool with_filters);
  Parsed ParseFilteredUnary() { return ParseUnary(true); }
  Parsed ParsePrimary();
  Parsed ParseName();
  Parsed ParseString();
  Parsed ParseList();
  Parsed ParseDict();
  Parsed ParseParenthesised();
  Parsed ParseSuffixes(ExpressionPointer base, bool with_filters);
  absl::StatusOr<bool> ParseSuffix(bool with_filters,
                                   std::vector<Suffix>* suffixes);
  absl::Status ParseAttribute(std::vector<Suffix>* suffixes);
  absl::Status ParseSubscript(std::vector<Suffix>* suffixes);
  absl::Status ParseTest(std::vector<Suffix>* suffixes);
  absl::StatusOr<FilterSuffix> ParseFilter();
  absl::StatusOr<Arguments> ParseArguments();
  bool AtTestArgument() const;

  Parsed ParseLogical(bool conjunction, Level next);
  template <class Chain>
  Parsed ParseChain(std::initializer_list<std::string_view> operators,
                    Level next);

  TokenStream& tokens_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_EXPRESSION_PARSER_H_
