#include "router/chat_template/value.h"

#include <algorithm>

namespace baton::router {
namespace {

int NestingOf(const ValueList& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.nesting());
  return deepest + 1;
}

int NestingOf(const ValueEntries& entries) {
  int deepest = 0;
  for (const auto& [key, value] : entries) {
    deepest = std::max({deepest, key.nesting(), value.nesting()});
  }
  return deepest + 1;
}

}  // namespace

Value::Value(MarkedText text)
    : data_(std::make_shared<const MarkedText>(std::move(text))) {}

Value::Value(ValueList items) {
  const int nesting = NestingOf(items);
  data_ = std::make_shared<const ListNode>(ListNode{std::move(items), nesting});
}

Value::Value(ValueEntries entries) {
  const int nesting = NestingOf(entries);
  data_ =
      std::make_shared<const DictNode>(DictNode{std::move(entries), nesting});
}

Value::Value(Callable callable)
    : data_(std::make_shared<const Callable>(std::move(callable))) {}

Value Value::Undefined(std::string_view name) {
  Value value;
  value.data_ = UndefinedValue{std::string(name)};
  return value;
}

const std::string& Value::undefined_name() const {
  return std::get<UndefinedValue>(data_).name;
}

int64_t Value::integer() const {
  return is_bool() ? static_cast<int64_t>(boolean()) : std::get<int64_t>(data_);
}

double Value::real() const {
  return is_float() ? std::get<double>(data_) : static_cast<double>(integer());
}

NamespaceObject* Value::namespace_object() const {
  const auto* object = std::get_if<NamespaceObject*>(&data_);
  return object == nullptr ? nullptr : *object;
}

LoopObject* Value::loop() const {
  const auto* loop = std::get_if<LoopObject*>(&data_);
  return loop == nullptr ? nullptr : *loop;
}

const Callable* Value::callable() const {
  const auto* callable = std::get_if<CallablePointer>(&data_);
  return callable == nullptr ? nullptr : callable->get();
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return real() != 0;
  if (is_string()) return text().size() > 0;
  if (is_list()) return !items().empty();
  if (is_dict()) return !entries().empty();
  return true;
}

int Value::nesting() const {
  if (is_list()) return std::get<ListPointer>(data_)->nesting;
  if (is_dict()) return std::get<DictPointer>(data_)->nesting;
  if (const Callable* function = callable();
      function != nullptr && function->receiver != nullptr) {
    return function->receiver->nesting() + 1;
  }
  return 0;
}

std::string_view Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_list()) return "list";
  if (is_dict()) return "dict";
  if (namespace_object() != nullptr) return "namespace";
  if (loop() != nullptr) return "loop";
  return callable()->kind == Callable::Kind::kMacro ? "macro" : "function";
}

}  // namespace baton::router
