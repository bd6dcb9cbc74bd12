#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/filters.h"
#include "router/chat_template/interpreter.h"
#include "router/chat_template/methods.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/text_writer.h"
#include "router/chat_template/value_tests.h"

namespace baton::router {

absl::StatusOr<Value> Interpreter::Evaluate(const Expression& expression,
                                            const Scope& scope) {
  BATON_RETURN_IF_ERROR(budget_.Steps(1));
  BATON_RETURN_IF_ERROR(budget_.Enter());
  absl::Cleanup leave = [this] { budget_.Leave(); };
  absl::StatusOr<Value> value = std::visit(
      [&](const auto& kind) { return Of(kind, scope); }, expression.kind);
  if (!value.ok()) return AtLine(expression.line, value.status());
  BATON_RETURN_IF_ERROR(budget_.Nesting(value->nesting()));
  return value;
}

absl::StatusOr<Value> Interpreter::Of(const LiteralExpression& e,
                                      const Scope&) {
  return e.value;
}

absl::StatusOr<Value> Interpreter::Of(const NameExpression& e,
                                      const Scope& scope) {
  const Value* value = scope.Find(e.name);
  return value == nullptr ? Value::Undefined(e.name) : *value;
}

absl::StatusOr<Value> Interpreter::Of(const ListExpression& e,
                                      const Scope& scope) {
  ValueList items;
  for (const ExpressionPointer& item : e.items) {
    BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
    items.push_back(std::move(value));
  }
  return Value(std::move(items));
}

absl::StatusOr<Value> Interpreter::Of(const DictExpression& e,
                                      const Scope& scope) {
  ValueEntries entries;
  for (const auto& [key, value] : e.entries) {
    BATON_ASSIGN_OR_RETURN(Value k, Evaluate(*key, scope));
    BATON_ASSIGN_OR_RETURN(Value v, Evaluate(*value, scope));
    bool replaced = false;
    for (auto& [known, old] : entries) {
      BATON_ASSIGN_OR_RETURN(replaced, Equal(known, k, budget_));
      if (replaced) {
        old = std::move(v);
        break;
      }
    }
    if (!replaced) entries.emplace_back(std::move(k), std::move(v));
  }
  return Value(std::move(entries));
}

absl::StatusOr<Value> Interpreter::Of(const ConditionalExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value test, Evaluate(*e.test, scope));
  if (test.truthy()) return Evaluate(*e.then, scope);
  if (e.otherwise == nullptr) return Value::Undefined("inline if");
  return Evaluate(*e.otherwise, scope);
}

absl::StatusOr<Value> Interpreter::Of(const LogicalExpression& e,
                                      const Scope& scope) {
  Value value;
  for (const ExpressionPointer& term : e.terms) {
    BATON_ASSIGN_OR_RETURN(value, Evaluate(*term, scope));
    if (value.truthy() != e.conjunction) break;
  }
  return value;
}

absl::StatusOr<Value> Interpreter::Of(const NotExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value operand, Evaluate(*e.operand, scope));
  return Value(!operand.truthy());
}

absl::StatusOr<Value> Interpreter::Of(const SignExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value operand, Evaluate(*e.operand, scope));
  if (!operand.is_number()) return WrongType("sign of a non-number", operand);
  return Arithmetic(e.negative ? "-" : "+", Value(int64_t{0}), operand,
                    budget_);
}

absl::StatusOr<Value> Interpreter::Of(const ComparisonExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(Value left, Evaluate(*e.first, scope));
  for (const auto& [op, operand] : e.rest) {
    BATON_ASSIGN_OR_RETURN(Value right, Evaluate(*operand, scope));
    bool holds = false;
    if (op == "==" || op == "!=") {
      BATON_ASSIGN_OR_RETURN(holds, Equal(left, right, budget_));
    } else if (op == "<" || op == ">=") {
      BATON_ASSIGN_OR_RETURN(holds, Less(left, right, budget_));
    } else if (op == ">" || op == "<=") {
      BATON_ASSIGN_OR_RETURN(holds, Less(right, left, budget_));
    } else {
      BATON_ASSIGN_OR_RETURN(holds, Contains(right, left, budget_));
    }
    const bool negated =
        op == "!=" || op == ">=" || op == "<=" || op == "not in";
    if (holds == negated) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

absl::StatusOr<Value> Interpreter::Of(const ArithmeticExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*e.first, scope));
  for (const auto& [op, operand] : e.rest) {
    BATON_ASSIGN_OR_RETURN(const Value right, Evaluate(*operand, scope));
    BATON_ASSIGN_OR_RETURN(value, Arithmetic(op, value, right, budget_));
  }
  return value;
}

absl::StatusOr<Value> Interpreter::Of(const ConcatenationExpression& e,
                                      const Scope& scope) {
  MarkedText text;
  for (const ExpressionPointer& term : e.terms) {
    BATON_ASSIGN_OR_RETURN(const Value value, Evaluate(*term, scope));
    BATON_ASSIGN_OR_RETURN(const MarkedText part, ToText(value, budget_));
    BATON_RETURN_IF_ERROR(budget_.Append(&text, part));
  }
  return Value(std::move(text));
}

absl::StatusOr<Value> Interpreter::Of(const SuffixExpression& e,
                                      const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*e.base, scope));
  for (const Suffix& suffix : e.suffixes) {
    BATON_RETURN_IF_ERROR(budget_.Steps(1));
    absl::StatusOr<Value> next =
        std::visit([&](const auto& kind) { return Apply(kind, value, scope); },
                   suffix.kind);
    if (!next.ok()) return AtLine(suffix.line, next.status());
    value = *std::move(next);
    BATON_RETURN_IF_ERROR(budget_.Nesting(value.nesting()));
  }
  return value;
}

absl::StatusOr<Value> Interpreter::Apply(const AttributeSuffix& s,
                                         const Value& base, const Scope&) {
  return Attribute(base, s.name);
}

absl::StatusOr<Value> Interpreter::Apply(const SubscriptSuffix& s,
                                         const Value& base,
                                         const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value key, Evaluate(*s.key, scope));
  BATON_ASSIGN_OR_RETURN(Value found, Subscript(base, key, budget_));
  // As jinja2: what is no item may be an attribute.
  if (found.is_undefined() && key.is_string()) {
    return Attribute(base, key.text().text());
  }
  return found;
}

absl::StatusOr<Value> Interpreter::Apply(const SliceSuffix& s,
                                         const Value& base,
                                         const Scope& scope) {
  Value parts[3];
  const ExpressionPointer* sources[3] = {&s.start, &s.stop, &s.step};
  for (int i = 0; i < 3; ++i) {
    if (*sources[i] == nullptr) continue;
    BATON_ASSIGN_OR_RETURN(parts[i], Evaluate(**sources[i], scope));
  }
  return Slice(base, parts[0], parts[1], parts[2], budget_);
}

absl::StatusOr<Value> Interpreter::Apply(const CallSuffix& s, const Value& base,
                                         const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const CallArguments arguments,
                         EvaluateArguments(s.arguments, scope));
  return Call(base, arguments);
}

absl::StatusOr<Value> Interpreter::Apply(const FilterSuffix& s,
                                         const Value& base,
                                         const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const CallArguments arguments,
                         EvaluateArguments(s.arguments, scope));
  return ApplyFilter(s.name, base, arguments, budget_);
}

absl::StatusOr<Value> Interpreter::Apply(const TestSuffix& s, const Value& base,
                                         const Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const CallArguments arguments,
                         EvaluateArguments(s.arguments, scope));
  BATON_ASSIGN_OR_RETURN(const bool holds,
                         ApplyTest(s.name, base, arguments, budget_));
  return Value(holds != s.negated);
}

absl::StatusOr<CallArguments> Interpreter::EvaluateArguments(
    const Arguments& arguments, const Scope& scope) {
  CallArguments evaluated;
  for (const ExpressionPointer& argument : arguments.positional) {
    BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    evaluated.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : arguments.named) {
    BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    evaluated.named.emplace_back(name, std::move(value));
  }
  return evaluated;
}

}  // namespace baton::router
