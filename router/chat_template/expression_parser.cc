#include "router/chat_template/expression_parser.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "router/chat_template/filters.h"
#include "router/chat_template/value_tests.h"

namespace baton::router {
namespace {

using Kind = TemplateToken::Kind;

template <class Node>
ExpressionPointer Make(int line, Node node) {
  return std::make_unique<const Expression>(Expression{line, std::move(node)});
}

ExpressionPointer Literal(int line, Value value) {
  return Make(line, LiteralExpression{std::move(value)});
}

template <class Node>
void AddSuffix(int line, Node node, std::vector<Suffix>* suffixes) {
  suffixes->push_back(Suffix{line, std::move(node)});
}

}  // namespace

absl::StatusOr<ExpressionPointer> ExpressionParser::Parse() {
  BATON_RETURN_IF_ERROR(tokens_.Enter());
  absl::Cleanup leave = [this] { tokens_.Leave(); };
  return ParseConditional();
}

absl::StatusOr<ExpressionPointer> ExpressionParser::ParseWithoutConditional() {
  BATON_RETURN_IF_ERROR(tokens_.Enter());
  absl::Cleanup leave = [this] { tokens_.Leave(); };
  return ParseOr();
}

absl::StatusOr<ExpressionPointer> ExpressionParser::ParseTuple(
    bool with_conditional) {
  const auto parse_one = [&] {
    return with_conditional ? Parse() : ParseWithoutConditional();
  };
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer first, parse_one());
  if (!tokens_.AtOperator(",")) return first;
  ListExpression list;
  list.items.push_back(std::move(first));
  while (tokens_.TakeOperator(",")) {
    const Kind next = tokens_.Peek().kind;
    if (next == Kind::kVariableEnd || next == Kind::kBlockEnd ||
        tokens_.AtOperator(")") || tokens_.AtOperator("=")) {
      break;
    }
    BATON_ASSIGN_OR_RETURN(ExpressionPointer item, parse_one());
    list.items.push_back(std::move(item));
  }
  return Make(line, std::move(list));
}

ExpressionParser::Parsed ExpressionParser::ParseConditional() {
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer then, ParseOr());
  if (!tokens_.TakeName("if")) return then;
  ConditionalExpression conditional;
  conditional.then = std::move(then);
  BATON_ASSIGN_OR_RETURN(conditional.test, ParseOr());
  if (tokens_.TakeName("else")) {
    BATON_ASSIGN_OR_RETURN(conditional.otherwise, Parse());
  }
  return Make(line, std::move(conditional));
}

ExpressionParser::Parsed ExpressionParser::ParseLogical(bool conjunction,
                                                        Level next) {
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer first, (this->*next)());
  const std::string_view word = conjunction ? "and" : "or";
  if (!tokens_.AtName(word)) return first;
  LogicalExpression logical{conjunction, {}};
  logical.terms.push_back(std::move(first));
  while (tokens_.TakeName(word)) {
    BATON_ASSIGN_OR_RETURN(ExpressionPointer term, (this->*next)());
    logical.terms.push_back(std::move(term));
  }
  return Make(line, std::move(logical));
}

ExpressionParser::Parsed ExpressionParser::ParseOr() {
  return ParseLogical(false, &ExpressionParser::ParseAnd);
}

ExpressionParser::Parsed ExpressionParser::ParseAnd() {
  return ParseLogical(true, &ExpressionParser::ParseNot);
}

ExpressionParser::Parsed ExpressionParser::ParseNot() {
  const int line = tokens_.line();
  if (!tokens_.TakeName("not")) return ParseComparison();
  BATON_RETURN_IF_ERROR(tokens_.Enter());
  absl::Cleanup leave = [this] { tokens_.Leave(); };
  BATON_ASSIGN_OR_RETURN(ExpressionPointer operand, ParseNot());
  return Make(line, NotExpression{std::move(operand)});
}

ExpressionParser::Parsed ExpressionParser::ParseComparison() {
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer first, ParseSum());
  ComparisonExpression comparison;
  while (true) {
    std::string op;
    for (const std::string_view candidate :
         {"==", "!=", "<", ">", "<=", ">="}) {
      if (tokens_.TakeOperator(candidate)) {
        op = candidate;
        break;
      }
    }
    if (op.empty() && tokens_.TakeName("in")) op = "in";
    if (op.empty() && tokens_.AtName("not") &&
        tokens_.Peek(1).kind == Kind::kName && tokens_.Peek(1).text == "in") {
      tokens_.Take();
      tokens_.Take();
      op = "not in";
    }
    if (op.empty()) break;
    BATON_ASSIGN_OR_RETURN(ExpressionPointer operand, ParseSum());
    comparison.rest.emplace_back(std::move(op), std::move(operand));
  }
  if (comparison.rest.empty()) return first;
  comparison.first = std::move(first);
  return Make(line, std::move(comparison));
}

template <class Chain>
ExpressionParser::Parsed ExpressionParser::ParseChain(
    std::initializer_list<std::string_view> operators, Level next) {
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer first, (this->*next)());
  Chain chain;
  while (true) {
    std::string op;
    for (const std::string_view candidate : operators) {
      if (op.empty() && tokens_.TakeOperator(candidate)) op = candidate;
    }
    if (op.empty()) break;
    BATON_ASSIGN_OR_RETURN(ExpressionPointer operand, (this->*next)());
    chain.rest.emplace_back(std::move(op), std::move(operand));
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return Make(line, std::move(chain));
}

ExpressionParser::Parsed ExpressionParser::ParseSum() {
  return ParseChain<ArithmeticExpression>(
      {"+", "-"}, &ExpressionParser::ParseConcatenation);
}

ExpressionParser::Parsed ExpressionParser::ParseConcatenation() {
  const int line = tokens_.line();
  BATON_ASSIGN_OR_RETURN(ExpressionPointer first, ParseProduct());
  if (!tokens_.AtOperator("~")) return first;
  ConcatenationExpression concatenation;
  concatenation.terms.push_back(std::move(first));
  while (tokens_.TakeOperator("~")) {
    BATON_ASSIGN_OR_RETURN(ExpressionPointer term, ParseProduct());
    concatenation.terms.push_back(std::move(term));
  }
  return Make(line, std::move(concatenation));
}

ExpressionParser::Parsed ExpressionParser::ParseProduct() {
  return ParseChain<ArithmeticExpression>({"*", "//", "/", "%"},
                                          &ExpressionParser::ParsePower);
}

ExpressionParser::Parsed ExpressionParser::ParsePower() {
  return ParseChain<ArithmeticExpression>(
      {"**"}, &ExpressionParser::ParseFilteredUnary);
}

ExpressionParser::Parsed ExpressionParser::ParseUnary(bool with_filters) {
  const int line = tokens_.line();
  if (!tokens_.AtOperator("-") && !tokens_.AtOperator("+")) {
    BATON_ASSIGN_OR_RETURN(ExpressionPointer primary, ParsePrimary());
    return ParseSuffixes(std::move(primary), with_filters);
  }
  BATON_RETURN_IF_ERROR(tokens_.Enter());
  absl::Cleanup leave = [this] { tokens_.Leave(); };
  const bool negative = tokens_.Take().text == "-";
  BATON_ASSIGN_OR_RETURN(ExpressionPointer operand, ParseUnary(false));
  return ParseSuffixes(Make(line, SignExpression{negative, std::move(operand)}),
                       with_filters);
}

ExpressionParser::Parsed ExpressionParser::ParsePrimary() {
  const int line = tokens_.line();
  switch (tokens_.Peek().kind) {
    case Kind::kName:
      return ParseName();
    case Kind::kString:
      return ParseString();
    case Kind::kInteger:
      return Literal(line, Value(tokens_.Take().integer));
    case Kind::kFloat:
      return Literal(line, Value(tokens_.Take().real));
    default:
      if (tokens_.TakeOperator("(")) return ParseParenthesised();
      if (tokens_.TakeOperator("[")) return ParseList();
      if (tokens_.TakeOperator("{")) return ParseDict();
      return tokens_.Unexpected("an expression");
  }
}

ExpressionParser::Parsed ExpressionParser::ParseName() {
  const int line = tokens_.line();
  const std::string name = tokens_.Take().text;
  if (name == "true" || name == "True") return Literal(line, Value(true));
  if (name == "false" || name == "False") return Literal(line, Value(false));
  if (name == "none" || name == "None") return Literal(line, Value());
  return Make(line, NameExpression{name});
}

ExpressionParser::Parsed ExpressionParser::ParseString() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.Peek().kind == Kind::kString) text += tokens_.Take().text;
  return Literal(line, Value::String(text));
}

ExpressionParser::Parsed ExpressionParser::ParseParenthesised() {
  const int line = tokens_.line();
  if (tokens_.TakeOperator(")")) return Make(line, ListExpression{});
  BATON_ASSIGN_OR_RETURN(ExpressionPointer inner, ParseTuple());
  BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
  return inner;
}

ExpressionParser::Parsed ExpressionParser::ParseList() {
  const int line = tokens_.line();
  ListExpression list;
  while (!tokens_.TakeOperator("]")) {
    if (!list.items.empty()) {
      BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.TakeOperator("]")) break;
    }
    BATON_ASSIGN_OR_RETURN(ExpressionPointer item, Parse());
    list.items.push_back(std::move(item));
  }
  return Make(line, std::move(list));
}

ExpressionParser::Parsed ExpressionParser::ParseDict() {
  const int line = tokens_.line();
  DictExpression dict;
  while (!tokens_.TakeOperator("}")) {
    if (!dict.entries.empty()) {
      BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.TakeOperator("}")) break;
    }
    BATON_ASSIGN_OR_RETURN(ExpressionPointer key, Parse());
    BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    BATON_ASSIGN_OR_RETURN(ExpressionPointer value, Parse());
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  return Make(line, std::move(dict));
}

ExpressionParser::Parsed ExpressionParser::ParseSuffixes(ExpressionPointer base,
                                                         bool with_filters) {
  const int line = base->line;
  std::vector<Suffix> suffixes;
  while (true) {
    BATON_ASSIGN_OR_RETURN(const bool found,
                           ParseSuffix(with_filters, &suffixes));
    if (!found) break;
  }
  if (suffixes.empty()) return base;
  return Make(line, SuffixExpression{std::move(base), std::move(suffixes)});
}

absl::StatusOr<bool> ExpressionParser::ParseSuffix(
    bool with_filters, std::vector<Suffix>* suffixes) {
  const int line = tokens_.line();
  if (tokens_.TakeOperator(".")) {
    BATON_RETURN_IF_ERROR(ParseAttribute(suffixes));
  } else if (tokens_.TakeOperator("[")) {
    BATON_RETURN_IF_ERROR(ParseSubscript(suffixes));
  } else if (tokens_.TakeOperator("(")) {
    BATON_ASSIGN_OR_RETURN(Arguments arguments, ParseArguments());
    AddSuffix(line, CallSuffix{std::move(arguments)}, suffixes);
  } else if (with_filters && tokens_.TakeOperator("|")) {
    BATON_ASSIGN_OR_RETURN(FilterSuffix filter, ParseFilter());
    AddSuffix(line, std::move(filter), suffixes);
  } else if (with_filters && tokens_.TakeName("is")) {
    BATON_RETURN_IF_ERROR(ParseTest(suffixes));
  } else {
    return false;
  }
  return true;
}

absl::Status ExpressionParser::ParseAttribute(std::vector<Suffix>* suffixes) {
  const TemplateToken& token = tokens_.Peek();
  const int line = token.line;
  if (token.kind == Kind::kInteger) {
    AddSuffix(line, SubscriptSuffix{Literal(line, Value(token.integer))},
              suffixes);
  } else if (token.kind == Kind::kName) {
    AddSuffix(line, AttributeSuffix{token.text}, suffixes);
  } else {
    return tokens_.Unexpected("a name");
  }
  tokens_.Take();
  return absl::OkStatus();
}

absl::Status ExpressionParser::ParseSubscript(std::vector<Suffix>* suffixes) {
  const int line = tokens_.line();
  ExpressionPointer parts[3];
  int part = 0;
  bool sliced = false;
  while (!tokens_.TakeOperator("]")) {
    if (tokens_.TakeOperator(":")) {
      sliced = true;
      if (++part > 2) return tokens_.Unexpected("']'");
    } else if (parts[part] == nullptr) {
      BATON_ASSIGN_OR_RETURN(parts[part], Parse());
    } else {
      return tokens_.Unexpected("']'");
    }
  }
  if (sliced) {
    AddSuffix(line,
              SliceSuffix{std::move(parts[0]), std::move(parts[1]),
                          std::move(parts[2])},
              suffixes);
    return absl::OkStatus();
  }
  if (parts[0] == nullptr) return TemplateError(line, "empty subscript");
  AddSuffix(line, SubscriptSuffix{std::move(parts[0])}, suffixes);
  return absl::OkStatus();
}

absl::StatusOr<FilterSuffix> ExpressionParser::ParseFilter() {
  if (tokens_.Peek().kind != Kind::kName) {
    return tokens_.Unexpected("a filter");
  }
  FilterSuffix filter;
  const int line = tokens_.line();
  filter.name = tokens_.Take().text;
  if (!IsFilter(filter.name)) {
    return TemplateError(line, StrCat("no filter named '", filter.name, "'"));
  }
  if (tokens_.TakeOperator("(")) {
    BATON_ASSIGN_OR_RETURN(filter.arguments, ParseArguments());
  }
  return filter;
}

absl::StatusOr<std::vector<FilterSuffix>> ExpressionParser::ParseFilters() {
  std::vector<FilterSuffix> filters;
  do {
    BATON_ASSIGN_OR_RETURN(FilterSuffix filter, ParseFilter());
    filters.push_back(std::move(filter));
  } while (tokens_.TakeOperator("|"));
  return filters;
}

absl::Status ExpressionParser::ParseTest(std::vector<Suffix>* suffixes) {
  TestSuffix test;
  const int line = tokens_.line();
  test.negated = tokens_.TakeName("not");
  if (tokens_.Peek().kind != Kind::kName) return tokens_.Unexpected("a test");
  test.name = tokens_.Take().text;
  if (!IsValueTest(test.name)) {
    return TemplateError(line, StrCat("no test named '", test.name, "'"));
  }
  if (tokens_.TakeOperator("(")) {
    BATON_ASSIGN_OR_RETURN(test.arguments, ParseArguments());
  } else if (AtTestArgument()) {
    BATON_RETURN_IF_ERROR(tokens_.Enter());
    absl::Cleanup leave = [this] { tokens_.Leave(); };
    BATON_ASSIGN_OR_RETURN(ExpressionPointer argument, ParseUnary(false));
    test.arguments.positional.push_back(std::move(argument));
  }
  AddSuffix(line, std::move(test), suffixes);
  return absl::OkStatus();
}

bool ExpressionParser::AtTestArgument() const {
  switch (tokens_.Peek().kind) {
    case Kind::kName:
      for (const std::string_view word :
           {"else", "or", "and", "is", "if", "in", "not"}) {
        if (tokens_.AtName(word)) return false;
      }
      return true;
    case Kind::kString:
    case Kind::kInteger:
    case Kind::kFloat:
      return true;
    default:
      return tokens_.AtOperator("[") || tokens_.AtOperator("{");
  }
}

absl::StatusOr<Arguments> ExpressionParser::ParseArguments() {
  Arguments arguments;
  bool first = true;
  while (!tokens_.TakeOperator(")")) {
    if (!first) {
      BATON_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.TakeOperator(")")) break;
    }
    first = false;
    if (tokens_.Peek().kind == Kind::kName &&
        tokens_.Peek(1).kind == Kind::kOperator &&
        tokens_.Peek(1).text == "=") {
      std::string name = tokens_.Take().text;
      tokens_.Take();
      BATON_ASSIGN_OR_RETURN(ExpressionPointer value, Parse());
      arguments.named.emplace_back(std::move(name), std::move(value));
      continue;
    }
    if (!arguments.named.empty()) {
      return TemplateError(tokens_.line(),
                           "positional argument after a named one");
    }
    BATON_ASSIGN_OR_RETURN(ExpressionPointer value, Parse());
    arguments.positional.push_back(std::move(value));
  }
  return arguments;
}

}  // namespace baton::router
