#include "router/chat_template/interpreter.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/lexer.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/text_writer.h"

namespace baton::router {

void Scope::Set(std::string_view name, Value value) {
  for (auto& [known, old] : names_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  names_.emplace_back(name, std::move(value));
}

const Value* Scope::Find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    for (const auto& [known, value] : scope->names_) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

absl::Status AtLine(int line, const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  if (status.code() != absl::StatusCode::kInvalidArgument ||
      message.starts_with("chat_template:")) {
    return status;
  }
  return TemplateError(line, message);
}

absl::StatusOr<MarkedText> Interpreter::Run(const Body& body,
                                            const Globals& globals) {
  for (const char* name : {"raise_exception", "range", "namespace", "dict"}) {
    globals_.Set(name, Value(Callable{Callable::Kind::kFunction, name, nullptr,
                                      nullptr}));
  }
  for (const auto& [name, value] : globals) globals_.Set(name, value);
  BATON_RETURN_IF_ERROR(Execute(body, root_).status());
  return std::move(output_);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const Body& body,
                                                       Scope& scope) {
  BATON_RETURN_IF_ERROR(budget_.Enter());
  absl::Cleanup leave = [this] { budget_.Leave(); };
  for (const Statement& statement : body) {
    absl::StatusOr<Flow> flow = ExecuteOne(statement, scope);
    if (!flow.ok()) return AtLine(statement.line, flow.status());
    if (*flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::ExecuteOne(
    const Statement& statement, Scope& scope) {
  BATON_RETURN_IF_ERROR(budget_.Steps(1));
  return std::visit([&](const auto& kind) { return Do(kind, scope); },
                    statement.kind);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const TextStatement& statement, Scope&) {
  BATON_RETURN_IF_ERROR(budget_.Append(&output_, statement.text));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const PrintStatement& statement, Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.value, scope));
  BATON_ASSIGN_OR_RETURN(const MarkedText text, ToText(value, budget_));
  BATON_RETURN_IF_ERROR(budget_.Append(&output_, text));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(const IfStatement& statement,
                                                  Scope& scope) {
  for (const IfStatement::Branch& branch : statement.branches) {
    bool taken = branch.test == nullptr;
    if (!taken) {
      BATON_ASSIGN_OR_RETURN(const Value test, Evaluate(*branch.test, scope));
      taken = test.truthy();
    }
    if (taken) return Execute(branch.body, scope);
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(const ForStatement& statement,
                                                  Scope& scope) {
  BATON_ASSIGN_OR_RETURN(ValueList items, LoopItems(statement, scope));
  if (items.empty()) {
    Scope inner(&scope);
    return Execute(statement.otherwise, inner);
  }
  loops_.push_back(std::make_unique<LoopObject>());
  LoopObject& loop = *loops_.back();
  loop.items = std::move(items);
  for (; loop.index < loop.items.size(); ++loop.index) {
    BATON_RETURN_IF_ERROR(budget_.Steps(1));
    Scope inner(&scope);
    inner.Set("loop", Value(&loop));
    BATON_RETURN_IF_ERROR(
        AssignLoopTargets(statement, loop.items[loop.index], inner));
    BATON_ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body, inner));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

absl::StatusOr<ValueList> Interpreter::LoopItems(const ForStatement& statement,
                                                 Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value iterable,
                         Evaluate(*statement.iterable, scope));
  BATON_ASSIGN_OR_RETURN(ValueList items, Iterate(iterable, budget_));
  if (statement.filter == nullptr) return items;
  ValueList kept;
  for (Value& item : items) {
    Scope inner(&scope);
    BATON_RETURN_IF_ERROR(AssignLoopTargets(statement, item, inner));
    BATON_ASSIGN_OR_RETURN(const Value test,
                           Evaluate(*statement.filter, inner));
    if (test.truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

absl::Status Interpreter::AssignLoopTargets(const ForStatement& statement,
                                            const Value& item, Scope& scope) {
  if (statement.targets.size() == 1) {
    scope.Set(statement.targets[0], item);
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const ValueList parts, Iterate(item, budget_));
  if (parts.size() != statement.targets.size()) {
    return absl::InvalidArgumentError(
        StrCat("cannot unpack ", parts.size(), " values into ",
               statement.targets.size(), " names"));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    scope.Set(statement.targets[i], parts[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(const SetStatement& statement,
                                                  Scope& scope) {
  BATON_ASSIGN_OR_RETURN(Value value, Evaluate(*statement.value, scope));
  if (statement.targets.size() == 1) {
    BATON_RETURN_IF_ERROR(
        Assign(statement.targets[0], std::move(value), scope));
    return Flow::kNext;
  }
  BATON_ASSIGN_OR_RETURN(const ValueList parts, Iterate(value, budget_));
  if (parts.size() != statement.targets.size()) {
    return absl::InvalidArgumentError(
        StrCat("cannot unpack ", parts.size(), " values into ",
               statement.targets.size(), " names"));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    BATON_RETURN_IF_ERROR(Assign(statement.targets[i], parts[i], scope));
  }
  return Flow::kNext;
}

absl::Status Interpreter::Assign(const SetTarget& target, Value value,
                                 Scope& scope) {
  if (target.attribute.empty()) {
    scope.Set(target.name, std::move(value));
    return absl::OkStatus();
  }
  const Value* object = scope.Find(target.name);
  if (object == nullptr || object->namespace_object() == nullptr) {
    return absl::InvalidArgumentError(
        "cannot assign attribute on non-namespace object");
  }
  auto& attributes = object->namespace_object()->attributes;
  for (auto& [name, old] : attributes) {
    if (name == target.attribute) {
      old = std::move(value);
      return absl::OkStatus();
    }
  }
  attributes.emplace_back(target.attribute, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::Capture(
    const Body& body, const std::vector<FilterSuffix>& filters, Scope& scope) {
  MarkedText outer = std::exchange(output_, MarkedText());
  Scope inner(&scope);
  const absl::Status status = Execute(body, inner).status();
  Value value(std::exchange(output_, std::move(outer)));
  BATON_RETURN_IF_ERROR(status);
  for (const FilterSuffix& filter : filters) {
    BATON_ASSIGN_OR_RETURN(value, Apply(filter, value, scope));
  }
  return value;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const CaptureStatement& statement, Scope& scope) {
  BATON_ASSIGN_OR_RETURN(Value value,
                         Capture(statement.body, statement.filters, scope));
  BATON_RETURN_IF_ERROR(Assign(statement.target, std::move(value), scope));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const FilterStatement& statement, Scope& scope) {
  BATON_ASSIGN_OR_RETURN(const Value value,
                         Capture(statement.body, statement.filters, scope));
  BATON_ASSIGN_OR_RETURN(const MarkedText text, ToText(value, budget_));
  BATON_RETURN_IF_ERROR(budget_.Append(&output_, text));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const MacroStatement& statement, Scope& scope) {
  scope.Set(statement.name,
            Value(Callable{Callable::Kind::kMacro, statement.name, nullptr,
                           &statement}));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Do(
    const GroupStatement& statement, Scope& scope) {
  Scope inner(&scope);
  return Execute(statement.body, inner);
}

}  // namespace baton::router
