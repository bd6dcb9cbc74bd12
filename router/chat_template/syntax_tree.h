#ifndef BATON_ROUTER_CHAT_TEMPLATE_SYNTAX_TREE_H_
#define BATON_ROUTER_CHAT_TEMPLATE_SYNTAX_TREE_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/chat_template/value.h"

namespace baton::router {

// A parsed template. Chains of one precedence (a + b - c, x|f|g, a.b.c) are
// flat lists, so the depth of the tree is the nesting of the source.

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;

struct Arguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
};

struct LiteralExpression {
  Value value;
};
struct NameExpression {
  std::string name;
};
struct ListExpression {
  std::vector<ExpressionPointer> items;
};
struct DictExpression {
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> entries;
};
struct ConditionalExpression {  // then if test else otherwise
  ExpressionPointer test;
  ExpressionPointer then;
  ExpressionPointer otherwise;  // may be null: Undefined
};
struct LogicalExpression {  // terms joined by `and` or by `or`
  bool conjunction;
  std::vector<ExpressionPointer> terms;
};
struct NotExpression {
  ExpressionPointer operand;
};
struct SignExpression {
  bool negative;
  ExpressionPointer operand;
};
struct OperatorChain {  // first op operand op operand ...
  ExpressionPointer first;
  std::vector<std::pair<std::string, ExpressionPointer>> rest;
};
struct ComparisonExpression : OperatorChain {};  // == != < > <= >= in not in
struct ArithmeticExpression : OperatorChain {};  // + - * / // % **
struct ConcatenationExpression {                 // ~
  std::vector<ExpressionPointer> terms;
};

struct AttributeSuffix {
  std::string name;
};
struct SubscriptSuffix {
  ExpressionPointer key;
};
struct SliceSuffix {  // parts may be null
  ExpressionPointer start;
  ExpressionPointer stop;
  ExpressionPointer step;
};
struct CallSuffix {
  Arguments arguments;
};
struct FilterSuffix {
  std::string name;
  Arguments arguments;
};
struct TestSuffix {
  std::string name;
  bool negated;
  Arguments arguments;
};
struct Suffix {
  int line;
  std::variant<AttributeSuffix, SubscriptSuffix, SliceSuffix, CallSuffix,
               FilterSuffix, TestSuffix>
      kind;
};
struct SuffixExpression {
  ExpressionPointer base;
  std::vector<Suffix> suffixes;
};

struct Expression {
  int line;
  std::variant<LiteralExpression, NameExpression, ListExpression,
               DictExpression, ConditionalExpression, LogicalExpression,
               NotExpression, SignExpression, ComparisonExpression,
               ArithmeticExpression, ConcatenationExpression, SuffixExpression>
      kind;
};

struct Statement;
using Body = std::vector<Statement>;

struct TextStatement {
  std::string text;
};
struct PrintStatement {
  ExpressionPointer value;
};
struct IfStatement {
  struct Branch {
    ExpressionPointer test;  // null for else
    Body body;
  };
  std::vector<Branch> branches;
};
struct ForStatement {
  std::vector<std::string> targets;
  ExpressionPointer iterable;
  ExpressionPointer filter;  // may be null
  Body body;
  Body otherwise;
};
struct SetTarget {
  std::string name;
  std::string attribute;  // of a namespace; empty for a plain name
};
struct SetStatement {  // more than one target unpacks
  std::vector<SetTarget> targets;
  ExpressionPointer value;
};
struct CaptureStatement {  // {% set x %}...{% endset %}
  SetTarget target;
  std::vector<FilterSuffix> filters;
  Body body;
};
struct FilterStatement {  // {% filter f %}...{% endfilter %}
  std::vector<FilterSuffix> filters;
  Body body;
};
struct MacroStatement {
  struct Parameter {
    std::string name;
    ExpressionPointer otherwise;  // may be null
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
};
struct GroupStatement {  // {% generation %}...{% endgeneration %}
  Body body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  int line;
  std::variant<TextStatement, PrintStatement, IfStatement, ForStatement,
               SetStatement, CaptureStatement, FilterStatement, MacroStatement,
               GroupStatement, BreakStatement, ContinueStatement>
      kind;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_SYNTAX_TREE_H_
