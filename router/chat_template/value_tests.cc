#include "router/chat_template/value_tests.h"

#include <algorithm>
#include <iterator>

#include "common/base/status_macros.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/python_text.h"

namespace baton::router {
namespace {

using UnaryTest = bool (*)(const Value&);
using BinaryTest = absl::StatusOr<bool> (*)(const Value&, const Value&,
                                            Budget&);

bool IsIterable(const Value& v) {
  return v.is_string() || v.is_list() || v.is_dict() || v.is_undefined();
}

bool HasCase(const Value& v, MarkedText (*mapped)(const MarkedText&),
             MarkedText (*other)(const MarkedText&)) {
  return v.is_string() && mapped(v.text()).text() == v.text().text() &&
         other(v.text()).text() != v.text().text();
}

constexpr struct {
  std::string_view name;
  UnaryTest test;
} kUnaryTests[] = {
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
    {"none", [](const Value& v) { return v.is_none(); }},
    {"boolean", [](const Value& v) { return v.is_bool(); }},
    {"true", [](const Value& v) { return v.is_bool() && v.boolean(); }},
    {"false", [](const Value& v) { return v.is_bool() && !v.boolean(); }},
    {"integer", [](const Value& v) { return v.is_integer(); }},
    {"float", [](const Value& v) { return v.is_float(); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"string", [](const Value& v) { return v.is_string(); }},
    {"mapping", [](const Value& v) { return v.is_dict(); }},
    {"iterable", IsIterable},
    {"sequence", IsIterable},
    {"callable", [](const Value& v) { return v.callable() != nullptr; }},
    {"lower", [](const Value& v) { return HasCase(v, LowerCase, UpperCase); }},
    {"upper", [](const Value& v) { return HasCase(v, UpperCase, LowerCase); }},
};

absl::StatusOr<bool> NotEqual(const Value& a, const Value& b, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const bool equal, Equal(a, b, budget));
  return !equal;
}

absl::StatusOr<bool> Greater(const Value& a, const Value& b, Budget& budget) {
  return Less(b, a, budget);
}

absl::StatusOr<bool> LessOrEqual(const Value& a, const Value& b,
                                 Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const bool less, Less(b, a, budget));
  return !less;
}

absl::StatusOr<bool> GreaterOrEqual(const Value& a, const Value& b,
                                    Budget& budget) {
  return LessOrEqual(b, a, budget);
}

absl::StatusOr<bool> IsIn(const Value& a, const Value& b, Budget& budget) {
  return Contains(b, a, budget);
}

absl::StatusOr<bool> IsDivisible(const Value& a, const Value& b,
                                 Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const Value rest, Arithmetic("%", a, b, budget));
  return !rest.truthy();
}

constexpr struct {
  std::string_view name;
  BinaryTest test;
} kBinaryTests[] = {
    {"eq", Equal},
    {"equalto", Equal},
    {"==", Equal},
    {"sameas", Equal},
    {"ne", NotEqual},
    {"!=", NotEqual},
    {"lt", Less},
    {"lessthan", Less},
    {"<", Less},
    {"gt", Greater},
    {"greaterthan", Greater},
    {">", Greater},
    {"le", LessOrEqual},
    {"<=", LessOrEqual},
    {"ge", GreaterOrEqual},
    {">=", GreaterOrEqual},
    {"in", IsIn},
    {"divisibleby", IsDivisible},
};

UnaryTest FindUnary(std::string_view name) {
  for (const auto& entry : kUnaryTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

BinaryTest FindBinary(std::string_view name) {
  for (const auto& entry : kBinaryTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace

bool IsValueTest(std::string_view name) {
  return name == "even" || name == "odd" || FindUnary(name) != nullptr ||
         FindBinary(name) != nullptr;
}

absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& value,
                               const CallArguments& arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(budget.Steps(1));
  if (const UnaryTest test = FindUnary(name)) {
    BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
    if (value.is_string()) {
      BATON_RETURN_IF_ERROR(budget.Bytes(value.text().size()));
    }
    return test(value);
  }
  if (const BinaryTest test = FindBinary(name)) {
    BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                           BoundArguments::Bind(arguments, {"other"}));
    BATON_ASSIGN_OR_RETURN(const Value other, bound.Required(0));
    return test(value, other, budget);
  }
  BATON_ASSIGN_OR_RETURN(const bool even,
                         IsDivisible(value, Value(int64_t{2}), budget));
  return name == "even" ? even : !even;
}

}  // namespace baton::router
