#ifndef BATON_ROUTER_CHAT_TEMPLATE_INTERPRETER_H_
#define BATON_ROUTER_CHAT_TEMPLATE_INTERPRETER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/call_arguments.h"
#include "router/chat_template/syntax_tree.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Names of one block; those of the enclosing blocks are seen through it.
class Scope {
 public:
  explicit Scope(const Scope* parent) : parent_(parent) {}

  void Set(std::string_view name, Value value);
  const Value* Find(std::string_view name) const;  // or nullptr

 private:
  const Scope* parent_;
  std::vector<std::pair<std::string, Value>> names_;
};

// One rendering of a template. Statements are in interpreter.cc, expressions
// in expression_evaluator.cc, calls and attributes in built_ins.cc. Use once;
// not thread-safe.
class Interpreter {
 public:
  using Globals = std::vector<std::pair<std::string, Value>>;

  explicit Interpreter(const ChatTemplateLimits& limits) : budget_(limits) {}

  // `globals` in addition to the built-in functions. Errors as
  // ChatTemplate::Render.
  absl::StatusOr<MarkedText> Run(const Body& body, const Globals& globals);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // Statements.
  absl::StatusOr<Flow> Execute(const Body& body, Scope& scope);
  absl::StatusOr<Flow> ExecuteOne(const Statement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const TextStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const PrintStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const IfStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const ForStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const SetStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const CaptureStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const FilterStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const MacroStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const GroupStatement& statement, Scope& scope);
  absl::StatusOr<Flow> Do(const BreakStatement&, Scope&) {
    return Flow::kBreak;
  }
  absl::StatusOr<Flow> Do(const ContinueStatement&, Scope&) {
    return Flow::kContinue;
  }
  absl::StatusOr<ValueList> LoopItems(const ForStatement& statement,
                                      Scope& scope);
  absl::Status AssignLoopTargets(const ForStatement& statement,
                                 const Value& item, Scope& scope);
  absl::Status Assign(const SetTarget& target, Value value, Scope& scope);
  // What `body` prints, in a scope of its own, through `filters`.
  absl::StatusOr<Value> Capture(const Body& body,
                                const std::vector<FilterSuffix>& filters,
                                Scope& scope);

  // Expressions.
  absl::StatusOr<Value> Evaluate(const Expression& expression,
                                 const Scope& scope);
  absl::StatusOr<Value> Of(const LiteralExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const NameExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const ListExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const DictExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const ConditionalExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const LogicalExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const NotExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const SignExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const ComparisonExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const ArithmeticExpression& e, const Scope& scope);
  absl::StatusOr<Value> Of(const ConcatenationExpression& e,
                           const Scope& scope);
  absl::StatusOr<Value> Of(const SuffixExpression& e, const Scope& scope);

  absl::StatusOr<Value> Apply(const AttributeSuffix& s, const Value& base,
                              const Scope& scope);
  absl::StatusOr<Value> Apply(const SubscriptSuffix& s, const Value& base,
                              const Scope& scope);
  absl::StatusOr<Value> Apply(const SliceSuffix& s, const Value& base,
                              const Scope& scope);
  absl::StatusOr<Value> Apply(const CallSuffix& s, const Value& base,
                              const Scope& scope);
  absl::StatusOr<Value> Apply(const FilterSuffix& s, const Value& base,
                              const Scope& scope);
  absl::StatusOr<Value> Apply(const TestSuffix& s, const Value& base,
                              const Scope& scope);

  absl::StatusOr<Value> Attribute(const Value& base, std::string_view name);
  absl::StatusOr<CallArguments> EvaluateArguments(const Arguments& arguments,
                                                  const Scope& scope);
  absl::StatusOr<Value> Call(const Value& callee,
                             const CallArguments& arguments);
  absl::StatusOr<Value> CallFunction(std::string_view name,
                                     const CallArguments& arguments);
  absl::StatusOr<Value> CallLoop(std::string_view name, LoopObject& loop,
                                 const CallArguments& arguments);
  absl::StatusOr<Value> CallMacro(const MacroStatement& macro,
                                  const CallArguments& arguments);
  absl::StatusOr<Value> MakeRange(const CallArguments& arguments);
  absl::StatusOr<Value> MakeNamespace(const CallArguments& arguments);
  absl::StatusOr<Value> MakeDict(const CallArguments& arguments);

  Budget budget_;
  Scope globals_{nullptr};
  Scope root_{&globals_};  // the template's own top level
  MarkedText output_;
  // Owned here because values only point to them.
  std::vector<std::unique_ptr<NamespaceObject>> namespaces_;
  std::vector<std::unique_ptr<LoopObject>> loops_;
};

// The status with a line in front of its message, unless it has one.
absl::Status AtLine(int line, const absl::Status& status);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_INTERPRETER_H_
