#ifndef BATON_ROUTER_CHAT_TEMPLATE_VALUE_H_
#define BATON_ROUTER_CHAT_TEMPLATE_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/chat_template/marked_text.h"

namespace baton::router {

class Value;
struct MacroStatement;

using ValueList = std::vector<Value>;
// In insertion order, as Python's.
using ValueEntries = std::vector<std::pair<Value, Value>>;

// What a name, key or attribute that does not exist gives. It prints as
// nothing, is false and empty; other operations are errors that name it.
struct UndefinedValue {
  std::string name;
};

// namespace(...): the only thing a template can change. Owned by the rendering.
struct NamespaceObject {
  std::vector<std::pair<std::string, Value>> attributes;
};

// `loop` of one for statement. Owned by the rendering.
struct LoopObject;

// Something that can be called: a global function, a method with the value it
// belongs to, or a macro.
struct Callable {
  enum class Kind : uint8_t { kFunction, kMethod, kMacro };
  Kind kind = Kind::kFunction;
  std::string name;
  std::shared_ptr<const Value> receiver;  // kMethod
  const MacroStatement* macro = nullptr;  // kMacro
};

// A Jinja value: immutable, cheap to copy (strings and containers are shared).
// Tuples are lists.
class Value {
 public:
  Value() = default;  // None
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(MarkedText text);
  explicit Value(ValueList items);
  explicit Value(ValueEntries entries);
  explicit Value(NamespaceObject* object) : data_(object) {}
  explicit Value(LoopObject* loop) : data_(loop) {}
  explicit Value(Callable callable);
  static Value Undefined(std::string_view name);
  static Value String(std::string_view text) {
    return Value(MarkedText(std::string(text)));
  }

  bool is_undefined() const { return Holds<UndefinedValue>(); }
  bool is_none() const { return Holds<std::monostate>(); }
  bool is_bool() const { return Holds<bool>(); }
  bool is_integer() const { return Holds<int64_t>(); }
  bool is_float() const { return Holds<double>(); }
  bool is_number() const { return is_bool() || is_integer() || is_float(); }
  bool is_string() const { return Holds<TextPointer>(); }
  bool is_list() const { return Holds<ListPointer>(); }
  bool is_dict() const { return Holds<DictPointer>(); }

  // Each requires the kind it names.
  const std::string& undefined_name() const;
  bool boolean() const { return std::get<bool>(data_); }
  const MarkedText& text() const { return *std::get<TextPointer>(data_); }
  const ValueList& items() const { return std::get<ListPointer>(data_)->items; }
  const ValueEntries& entries() const {
    return std::get<DictPointer>(data_)->entries;
  }
  // Of a bool or integer; of any number.
  int64_t integer() const;
  double real() const;

  // nullptr when it is something else.
  NamespaceObject* namespace_object() const;
  LoopObject* loop() const;
  const Callable* callable() const;

  bool truthy() const;
  // Containers within containers; 0 for what contains nothing.
  int nesting() const;
  // Python's type name: "str", "dict", ...
  std::string_view type_name() const;

 private:
  struct ListNode {
    ValueList items;
    int nesting;
  };
  struct DictNode {
    ValueEntries entries;
    int nesting;
  };
  using TextPointer = std::shared_ptr<const MarkedText>;
  using ListPointer = std::shared_ptr<const ListNode>;
  using DictPointer = std::shared_ptr<const DictNode>;
  using CallablePointer = std::shared_ptr<const Callable>;

  template <class T>
  bool Holds() const {
    return std::holds_alternative<T>(data_);
  }

  std::variant<std::monostate, UndefinedValue, bool, int64_t, double,
               TextPointer, ListPointer, DictPointer, CallablePointer,
               NamespaceObject*, LoopObject*>
      data_;
};

struct LoopObject {
  ValueList items;
  size_t index = 0;
  Value changed;  // last arguments of loop.changed(), None before
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_VALUE_H_
