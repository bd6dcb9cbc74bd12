// What templates can call and look up beside operators: attributes, `loop`,
// macros and the global functions.
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/interpreter.h"
#include "router/chat_template/methods.h"
#include "router/chat_template/operations.h"

namespace baton::router {
namespace {

constexpr size_t kMaxRaisedBytes = 1000;

std::optional<Value> LoopAttribute(const LoopObject& loop,
                                   std::string_view name) {
  const int64_t index = static_cast<int64_t>(loop.index);
  const int64_t length = static_cast<int64_t>(loop.items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  // Only recursive loops, which are not supported, get deeper.
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") {
    return index > 0 ? loop.items[loop.index - 1]
                     : Value::Undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? loop.items[loop.index + 1]
                              : Value::Undefined("there is no next item");
  }
  return std::nullopt;
}

Value MethodOf(const Value& receiver, std::string_view name) {
  Callable method;
  method.kind = Callable::Kind::kMethod;
  method.name = std::string(name);
  method.receiver = std::make_shared<const Value>(receiver);
  return Value(std::move(method));
}

}  // namespace

absl::StatusOr<Value> Interpreter::Attribute(const Value& base,
                                             std::string_view name) {
  if (base.is_undefined()) return WrongType("attribute", base);
  if (HasMethod(base, name)) return MethodOf(base, name);
  if (base.is_dict()) {
    return Subscript(base, Value::String(name), budget_);
  }
  if (const NamespaceObject* object = base.namespace_object()) {
    for (const auto& [known, value] : object->attributes) {
      if (known == name) return value;
    }
  }
  if (const LoopObject* loop = base.loop()) {
    if (name == "cycle" || name == "changed") return MethodOf(base, name);
    if (std::optional<Value> value = LoopAttribute(*loop, name)) return *value;
  }
  return Value::Undefined(name);
}

absl::StatusOr<Value> Interpreter::Call(const Value& callee,
                                        const CallArguments& arguments) {
  const Callable* callable = callee.callable();
  if (callable == nullptr) return WrongType("not callable", callee);
  switch (callable->kind) {
    case Callable::Kind::kMacro:
      return CallMacro(*callable->macro, arguments);
    case Callable::Kind::kMethod:
      if (LoopObject* loop = callable->receiver->loop()) {
        return CallLoop(callable->name, *loop, arguments);
      }
      return CallMethod(callable->name, *callable->receiver, arguments,
                        budget_);
    case Callable::Kind::kFunction:
      break;
  }
  return CallFunction(callable->name, arguments);
}

absl::StatusOr<Value> Interpreter::CallMacro(const MacroStatement& macro,
                                             const CallArguments& arguments) {
  BATON_RETURN_IF_ERROR(budget_.Enter());
  absl::Cleanup leave = [this] { budget_.Leave(); };
  Scope scope(&root_);
  const auto& parameters = macro.parameters;
  if (arguments.positional.size() > parameters.size()) {
    return absl::InvalidArgumentError(
        StrCat("macro '", macro.name, "' takes not more than ",
               parameters.size(), " argument(s)"));
  }
  size_t named_used = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Value value = Value::Undefined(parameters[i].name);
    bool given = i < arguments.positional.size();
    if (given) value = arguments.positional[i];
    for (const auto& [name, argument] : arguments.named) {
      if (given || name != parameters[i].name) continue;
      value = argument;
      given = true;
      ++named_used;
    }
    if (!given && parameters[i].otherwise != nullptr) {
      BATON_ASSIGN_OR_RETURN(value, Evaluate(*parameters[i].otherwise, scope));
    }
    scope.Set(parameters[i].name, std::move(value));
  }
  if (named_used != arguments.named.size()) {
    return absl::InvalidArgumentError(
        StrCat("macro '", macro.name, "' got an unexpected argument"));
  }
  return Capture(macro.body, {}, scope);
}

absl::StatusOr<Value> Interpreter::CallLoop(std::string_view name,
                                            LoopObject& loop,
                                            const CallArguments& arguments) {
  if (!arguments.named.empty()) {
    return absl::InvalidArgumentError(
        StrCat("loop.", name, " takes no named arguments"));
  }
  if (name == "cycle") {
    if (arguments.positional.empty()) {
      return absl::InvalidArgumentError("loop.cycle: no items given");
    }
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  Value current{ValueList(arguments.positional)};
  BATON_RETURN_IF_ERROR(budget_.Nesting(current.nesting()));
  BATON_ASSIGN_OR_RETURN(const bool same,
                         Equal(loop.changed, current, budget_));
  loop.changed = std::move(current);
  return Value(!same);
}

absl::StatusOr<Value> Interpreter::CallFunction(
    std::string_view name, const CallArguments& arguments) {
  if (name == "range") return MakeRange(arguments);
  if (name == "namespace") return MakeNamespace(arguments);
  if (name == "dict") return MakeDict(arguments);
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"message"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText message, bound.Text(0));
  return absl::InvalidArgumentError(message.text().substr(0, kMaxRaisedBytes));
}

absl::StatusOr<Value> Interpreter::MakeRange(const CallArguments& arguments) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"start", "stop", "step"}));
  int64_t start = 0;
  BATON_RETURN_IF_ERROR(bound.Required(0).status());
  BATON_ASSIGN_OR_RETURN(int64_t stop, bound.IntegerOr(0, 0));
  if (bound.Has(1)) {
    start = stop;
    BATON_ASSIGN_OR_RETURN(stop, bound.IntegerOr(1, 0));
  }
  BATON_ASSIGN_OR_RETURN(const int64_t step, bound.IntegerOr(2, 1));
  if (step == 0) {
    return absl::InvalidArgumentError("range: step must not be zero");
  }
  ValueList items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    BATON_RETURN_IF_ERROR(budget_.Steps(1));
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return Value(std::move(items));
}

absl::StatusOr<Value> Interpreter::MakeNamespace(
    const CallArguments& arguments) {
  auto object = std::make_unique<NamespaceObject>();
  for (const Value& value : arguments.positional) {
    if (!value.is_dict()) return WrongType("namespace of a non-dict", value);
    for (const auto& [key, member] : value.entries()) {
      if (!key.is_string()) return WrongType("attribute name", key);
      object->attributes.emplace_back(key.text().text(), member);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    object->attributes.emplace_back(name, value);
  }
  namespaces_.push_back(std::move(object));
  return Value(namespaces_.back().get());
}

absl::StatusOr<Value> Interpreter::MakeDict(const CallArguments& arguments) {
  ValueEntries entries;
  for (const Value& value : arguments.positional) {
    if (!value.is_dict()) return WrongType("dict of a non-dict", value);
    entries = value.entries();
  }
  for (const auto& [name, value] : arguments.named) {
    bool replaced = false;
    for (auto& [known, old] : entries) {
      if (!known.is_string() || known.text().text() != name) continue;
      old = value;
      replaced = true;
    }
    if (!replaced) entries.emplace_back(Value::String(name), value);
  }
  return Value(std::move(entries));
}

}  // namespace baton::router
