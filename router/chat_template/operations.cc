#include "router/chat_template/operations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/python_text.h"

namespace baton::router {
namespace {

absl::Status Unsupported(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) return WrongType(op, a);
  if (b.is_undefined()) return WrongType(op, b);
  return absl::InvalidArgumentError(StrCat("unsupported operand types for ", op,
                                           ": '", a.type_name(), "' and '",
                                           b.type_name(), "'"));
}

absl::Status OutOfRange() {
  return absl::InvalidArgumentError("integer out of range");
}

bool IsIntegral(const Value& value) {
  return value.is_bool() || value.is_integer();
}

absl::StatusOr<Value> IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return absl::InvalidArgumentError("division by zero");
    return Value(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t power = 1;
  while (exponent > 0) {
    if (base == 0 || base == 1) return Value(base);
    if (base == -1) return Value(int64_t{exponent % 2 == 0 ? 1 : -1});
    if (__builtin_mul_overflow(power, base, &power)) return OutOfRange();
    --exponent;
  }
  return Value(power);
}

absl::StatusOr<Value> OfIntegers(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &result)) return OutOfRange();
  } else if (op == "-") {
    if (__builtin_sub_overflow(a, b, &result)) return OutOfRange();
  } else if (op == "*") {
    if (__builtin_mul_overflow(a, b, &result)) return OutOfRange();
  } else if (op == "**") {
    return IntegerPower(a, b);
  } else if (b == 0) {
    return absl::InvalidArgumentError("division by zero");
  } else if (op == "/") {
    return Value(static_cast<double>(a) / static_cast<double>(b));
  } else if (b == -1) {
    if (op == "//" && __builtin_sub_overflow(int64_t{0}, a, &result)) {
      return OutOfRange();
    }
  } else {
    const bool rounds_down = a % b != 0 && (a % b < 0) != (b < 0);
    result = op == "//" ? a / b - (rounds_down ? 1 : 0)
                        : a % b + (rounds_down ? b : 0);
  }
  return Value(result);
}

absl::StatusOr<Value> OfReals(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") return Value(std::pow(a, b));
  if (b == 0) return absl::InvalidArgumentError("division by zero");
  if (op == "/") return Value(a / b);
  const double floor = std::floor(a / b);
  if (op == "//") return Value(floor);
  const double remainder = std::fmod(a, b);
  return Value(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                            : remainder);
}

absl::StatusOr<Value> Repeated(const Value& value, int64_t times,
                               Budget& budget) {
  const uint64_t n = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  uint64_t total;
  if (value.is_string()) {
    if (__builtin_mul_overflow(n, value.text().size(), &total)) {
      total = ~uint64_t{0};
    }
    BATON_RETURN_IF_ERROR(budget.StringOf(total));
    MarkedText text;
    if (total > 0) {
      for (uint64_t i = 0; i < n; ++i) text.Append(value.text());
    }
    return Value(std::move(text));
  }
  if (__builtin_mul_overflow(n, value.items().size(), &total)) {
    total = ~uint64_t{0};
  }
  BATON_RETURN_IF_ERROR(budget.Steps(total));
  ValueList items;
  if (total > 0) {
    for (uint64_t i = 0; i < n; ++i) {
      items.insert(items.end(), value.items().begin(), value.items().end());
    }
  }
  return Value(std::move(items));
}

// Python's slice.indices.
struct Range {
  int64_t start;
  int64_t stop;
  int64_t step;
};

absl::StatusOr<Range> SliceIndices(const Value& start, const Value& stop,
                                   const Value& step, int64_t length) {
  for (const Value* part : {&start, &stop, &step}) {
    if (!part->is_none() && !IsIntegral(*part)) {
      return WrongType("slice indices must be integers", *part);
    }
  }
  Range range{0, 0, step.is_none() ? 1 : step.integer()};
  if (range.step == 0) {
    return absl::InvalidArgumentError("slice step cannot be zero");
  }
  const int64_t lower = range.step > 0 ? 0 : -1;
  const int64_t upper = range.step > 0 ? length : length - 1;
  const auto clamped = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    int64_t index = value.integer();
    if (index < 0) index = std::max(index, -length - 1) + length;
    return std::clamp(index, lower, upper);
  };
  range.start = clamped(start, range.step > 0 ? lower : upper);
  range.stop = clamped(stop, range.step > 0 ? upper : lower);
  return range;
}

// Calls `visit(index)` for every index of the range.
template <class Visit>
void ForEachIndex(const Range& range, const Visit& visit) {
  int64_t at = range.start;
  while (range.step > 0 ? at < range.stop : at > range.stop) {
    visit(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, range.step, &at)) return;
  }
}

// Byte bounds of character `index`, negative from the end; nullopt outside.
std::optional<std::pair<size_t, size_t>> CharacterAt(std::string_view text,
                                                     int64_t index) {
  const std::vector<size_t> offsets = CharacterOffsets(text);
  const int64_t count = static_cast<int64_t>(offsets.size()) - 1;
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return std::pair(offsets[static_cast<size_t>(index)],
                   offsets[static_cast<size_t>(index) + 1]);
}

}  // namespace

absl::Status WrongType(std::string_view what, const Value& value) {
  if (value.is_undefined()) {
    return absl::InvalidArgumentError(
        StrCat("'", value.undefined_name(), "' is undefined"));
  }
  return absl::InvalidArgumentError(
      StrCat(what, " (got ", value.type_name(), ")"));
}

absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget& budget) {
  BATON_RETURN_IF_ERROR(budget.Steps(1));
  if (a.is_number() && b.is_number()) {
    return IsIntegral(a) && IsIntegral(b) ? a.integer() == b.integer()
                                          : a.real() == b.real();
  }
  if (a.is_string() && b.is_string()) {
    if (a.text().size() != b.text().size()) return false;
    BATON_RETURN_IF_ERROR(budget.Bytes(a.text().size()));
    return a.text().text() == b.text().text();
  }
  if (a.is_list() && b.is_list()) {
    if (a.items().size() != b.items().size()) return false;
    for (size_t i = 0; i < a.items().size(); ++i) {
      BATON_ASSIGN_OR_RETURN(const bool equal,
                             Equal(a.items()[i], b.items()[i], budget));
      if (!equal) return false;
    }
    return true;
  }
  if (a.is_dict() && b.is_dict()) {
    if (a.entries().size() != b.entries().size()) return false;
    for (const auto& [key, value] : a.entries()) {
      BATON_ASSIGN_OR_RETURN(const std::optional<Value> other,
                             Lookup(b, key, budget));
      if (!other.has_value()) return false;
      BATON_ASSIGN_OR_RETURN(const bool equal, Equal(value, *other, budget));
      if (!equal) return false;
    }
    return true;
  }
  return (a.is_none() && b.is_none()) ||
         (a.is_undefined() && b.is_undefined()) ||
         (a.namespace_object() != nullptr &&
          a.namespace_object() == b.namespace_object());
}

absl::StatusOr<bool> Less(const Value& a, const Value& b, Budget& budget) {
  BATON_RETURN_IF_ERROR(budget.Steps(1));
  if (a.is_number() && b.is_number()) {
    return IsIntegral(a) && IsIntegral(b) ? a.integer() < b.integer()
                                          : a.real() < b.real();
  }
  if (a.is_string() && b.is_string()) {
    BATON_RETURN_IF_ERROR(
        budget.Bytes(std::min(a.text().size(), b.text().size())));
    return a.text().text() < b.text().text();
  }
  if (a.is_list() && b.is_list()) {
    const size_t shared = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < shared; ++i) {
      BATON_ASSIGN_OR_RETURN(const bool equal,
                             Equal(a.items()[i], b.items()[i], budget));
      if (!equal) return Less(a.items()[i], b.items()[i], budget);
    }
    return a.items().size() < b.items().size();
  }
  return Unsupported("<", a, b);
}

absl::StatusOr<bool> Contains(const Value& haystack, const Value& needle,
                              Budget& budget) {
  if (haystack.is_string()) {
    if (!needle.is_string()) {
      return WrongType("'in <string>' requires a string", needle);
    }
    BATON_RETURN_IF_ERROR(budget.Bytes(haystack.text().size()));
    return FindText(haystack.text().text(), needle.text().text()) !=
           std::string_view::npos;
  }
  if (haystack.is_dict()) {
    BATON_ASSIGN_OR_RETURN(const std::optional<Value> found,
                           Lookup(haystack, needle, budget));
    return found.has_value();
  }
  if (haystack.is_undefined()) return false;
  if (!haystack.is_list()) {
    return WrongType("'in' requires a string, list or dict", haystack);
  }
  for (const Value& item : haystack.items()) {
    BATON_ASSIGN_OR_RETURN(const bool equal, Equal(item, needle, budget));
    if (equal) return true;
  }
  return false;
}

absl::StatusOr<Value> Arithmetic(std::string_view op, const Value& a,
                                 const Value& b, Budget& budget) {
  if (IsIntegral(a) && IsIntegral(b)) {
    return OfIntegers(op, a.integer(), b.integer());
  }
  if (a.is_number() && b.is_number()) return OfReals(op, a.real(), b.real());
  if (op == "+" && a.is_string() && b.is_string()) {
    MarkedText text;
    BATON_RETURN_IF_ERROR(budget.Append(&text, a.text()));
    BATON_RETURN_IF_ERROR(budget.Append(&text, b.text()));
    return Value(std::move(text));
  }
  if (op == "+" && a.is_list() && b.is_list()) {
    BATON_RETURN_IF_ERROR(budget.Steps(a.items().size() + b.items().size()));
    ValueList items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value(std::move(items));
  }
  if (op == "*" && IsIntegral(b) && (a.is_string() || a.is_list())) {
    return Repeated(a, b.integer(), budget);
  }
  if (op == "*" && IsIntegral(a) && (b.is_string() || b.is_list())) {
    return Repeated(b, a.integer(), budget);
  }
  return Unsupported(op, a, b);
}

absl::StatusOr<ValueList> Iterate(const Value& value, Budget& budget) {
  ValueList items;
  if (value.is_list()) {
    BATON_RETURN_IF_ERROR(budget.Steps(value.items().size()));
    return value.items();
  }
  if (value.is_dict()) {
    BATON_RETURN_IF_ERROR(budget.Steps(value.entries().size()));
    for (const auto& [key, unused] : value.entries()) items.push_back(key);
    return items;
  }
  if (value.is_string()) {
    BATON_RETURN_IF_ERROR(budget.Steps(CharacterCount(value.text().text())));
    const std::vector<size_t> offsets = CharacterOffsets(value.text().text());
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      items.emplace_back(value.text().Substring(offsets[i], offsets[i + 1]));
    }
    return items;
  }
  if (value.is_undefined()) return items;
  return WrongType("not iterable", value);
}

absl::StatusOr<int64_t> Length(const Value& value) {
  if (value.is_string()) {
    return static_cast<int64_t>(CharacterCount(value.text().text()));
  }
  if (value.is_list()) return static_cast<int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<int64_t>(value.entries().size());
  if (value.is_undefined()) return int64_t{0};
  return WrongType("has no length", value);
}

absl::StatusOr<std::optional<Value>> Lookup(const Value& dict, const Value& key,
                                            Budget& budget) {
  for (const auto& [candidate, value] : dict.entries()) {
    BATON_ASSIGN_OR_RETURN(const bool equal, Equal(candidate, key, budget));
    if (equal) return std::optional<Value>(value);
  }
  return std::optional<Value>();
}

absl::StatusOr<Value> Subscript(const Value& value, const Value& key,
                                Budget& budget) {
  const std::string name = key.is_string()   ? key.text().text()
                           : IsIntegral(key) ? StrCat(key.integer())
                                             : "item";
  if (value.is_undefined()) return WrongType("subscript", value);
  if (value.is_dict()) {
    BATON_ASSIGN_OR_RETURN(std::optional<Value> found,
                           Lookup(value, key, budget));
    return found.has_value() ? *std::move(found) : Value::Undefined(name);
  }
  if (value.is_list() && IsIntegral(key)) {
    const int64_t count = static_cast<int64_t>(value.items().size());
    const int64_t index = key.integer() + (key.integer() < 0 ? count : 0);
    if (index < 0 || index >= count) return Value::Undefined(name);
    return value.items()[static_cast<size_t>(index)];
  }
  if (value.is_string() && IsIntegral(key)) {
    BATON_RETURN_IF_ERROR(budget.Bytes(value.text().size()));
    const auto bounds = CharacterAt(value.text().text(), key.integer());
    if (!bounds.has_value()) return Value::Undefined(name);
    return Value(value.text().Substring(bounds->first, bounds->second));
  }
  return Value::Undefined(name);
}

absl::StatusOr<Value> Slice(const Value& value, const Value& start,
                            const Value& stop, const Value& step,
                            Budget& budget) {
  if (value.is_list()) {
    const int64_t length = static_cast<int64_t>(value.items().size());
    BATON_ASSIGN_OR_RETURN(const Range range,
                           SliceIndices(start, stop, step, length));
    BATON_RETURN_IF_ERROR(budget.Steps(value.items().size()));
    ValueList items;
    ForEachIndex(range, [&](size_t i) { items.push_back(value.items()[i]); });
    return Value(std::move(items));
  }
  if (!value.is_string()) return WrongType("cannot be sliced", value);
  const MarkedText& text = value.text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  const std::vector<size_t> offsets = CharacterOffsets(text.text());
  const int64_t length = static_cast<int64_t>(offsets.size()) - 1;
  BATON_ASSIGN_OR_RETURN(const Range range,
                         SliceIndices(start, stop, step, length));
  if (range.step == 1) {
    const size_t begin = static_cast<size_t>(range.start);
    const size_t end = static_cast<size_t>(std::max(range.start, range.stop));
    return Value(text.Substring(offsets[begin], offsets[end]));
  }
  MarkedText sliced;
  ForEachIndex(range, [&](size_t i) {
    sliced.Append(text.Substring(offsets[i], offsets[i + 1]));
  });
  return Value(std::move(sliced));
}

}  // namespace baton::router
