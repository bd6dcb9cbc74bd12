#include "router/chat_template/filters.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/methods.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/python_text.h"
#include "router/chat_template/text_writer.h"

namespace baton::router {
namespace {

using Arguments = const CallArguments&;
using Result = absl::StatusOr<Value>;

// A string method applied to str(value).
Result AsMethod(std::string_view method, const Value& value,
                Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(MarkedText text, ToText(value, budget));
  return CallMethod(method, Value(std::move(text)), arguments, budget);
}

template <MarkedText (*kMap)(const MarkedText&)>
Result MapText(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(const MarkedText text, ToText(value, budget));
  return Value(kMap(text));
}

Result Trim(const Value& value, Arguments arguments, Budget& budget) {
  return AsMethod("strip", value, arguments, budget);
}

Result Replace(const Value& value, Arguments arguments, Budget& budget) {
  return AsMethod("replace", value, arguments, budget);
}

Result AsString(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(MarkedText text, ToText(value, budget));
  return Value(std::move(text));
}

Result CountOf(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  if (value.is_string()) {
    BATON_RETURN_IF_ERROR(budget.Bytes(value.text().size()));
  }
  BATON_ASSIGN_OR_RETURN(const int64_t length, Length(value));
  return Value(length);
}

Result Default(const Value& value, Arguments arguments, Budget&) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"default_value", "boolean"}));
  const bool replaced =
      value.is_undefined() || (bound.FlagOr(1, false) && !value.truthy());
  return replaced ? bound.ValueOr(0, Value::String("")) : value;
}

Result ToJsonFilter(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(
          arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  if (bound.FlagOr(0, false) || bound.Has(2)) {
    return absl::InvalidArgumentError(
        "tojson: ensure_ascii and separators are not supported");
  }
  std::optional<int64_t> indent;
  if (!bound.ValueOr(1, Value()).is_none()) {
    BATON_ASSIGN_OR_RETURN(indent, bound.IntegerOr(1, 0));
  }
  BATON_ASSIGN_OR_RETURN(MarkedText json,
                         ToJson(value, indent, bound.FlagOr(3, false), budget));
  return Value(std::move(json));
}

Result AsInteger(const Value& value, Arguments arguments, Budget&) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"default"}));
  if (value.is_integer() || value.is_bool()) return Value(value.integer());
  if (value.is_float() && std::abs(value.real()) < 9e18) {
    return Value(static_cast<int64_t>(value.real()));
  }
  if (value.is_string()) {
    const std::string_view text = StripRight(StripLeft(value.text().text()));
    const std::string_view digits =
        text.starts_with('+') ? text.substr(1) : text;
    int64_t parsed = 0;
    const char* last = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), last, parsed);
    if (result.ec == std::errc() && result.ptr == last) return Value(parsed);
  }
  return bound.ValueOr(0, Value(int64_t{0}));
}

Result AsFloat(const Value& value, Arguments arguments, Budget&) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"default"}));
  if (value.is_number()) return Value(value.real());
  if (value.is_string()) {
    const std::string_view text = StripRight(StripLeft(value.text().text()));
    double parsed = 0;
    const char* last = text.data() + text.size();
    const auto result = std::from_chars(text.data(), last, parsed);
    if (result.ec == std::errc() && result.ptr == last) return Value(parsed);
  }
  return bound.ValueOr(0, Value(0.0));
}

Result Absolute(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  if (!value.is_number()) return WrongType("abs of a non-number", value);
  if (value.is_float()) return Value(std::abs(value.real()));
  if (value.integer() >= 0) return Value(value.integer());
  return Arithmetic("-", Value(int64_t{0}), value, budget);
}

Result Round(const Value& value, Arguments arguments, Budget&) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"precision", "method"}));
  if (!value.is_number()) return WrongType("round of a non-number", value);
  BATON_ASSIGN_OR_RETURN(const int64_t precision, bound.IntegerOr(0, 0));
  BATON_ASSIGN_OR_RETURN(const MarkedText method, bound.TextOr(1, "common"));
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.real() * scale;
  if (method.text() == "ceil") return Value(std::ceil(scaled) / scale);
  if (method.text() == "floor") return Value(std::floor(scaled) / scale);
  return Value(std::nearbyint(scaled) / scale);
}

Result Indent(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"width", "first", "blank"}));
  MarkedText indent;
  if (bound.ValueOr(0, Value()).is_string()) {
    BATON_ASSIGN_OR_RETURN(indent, bound.Text(0));
  } else {
    BATON_ASSIGN_OR_RETURN(const int64_t width, bound.IntegerOr(0, 4));
    BATON_ASSIGN_OR_RETURN(
        const Value spaces,
        Arithmetic("*", Value::String(" "), Value(width), budget));
    indent = spaces.text();
  }
  BATON_ASSIGN_OR_RETURN(const MarkedText text, ToText(value, budget));
  MarkedText indented;
  size_t begin = 0;
  while (true) {
    const size_t newline = text.text().find('\n', begin);
    const size_t end = newline == std::string::npos ? text.size() : newline;
    const bool wanted = begin == 0 ? bound.FlagOr(1, false)
                                   : end > begin || bound.FlagOr(2, false);
    if (wanted) BATON_RETURN_IF_ERROR(budget.Append(&indented, indent));
    const size_t next = newline == std::string::npos ? end : end + 1;
    BATON_RETURN_IF_ERROR(
        budget.Append(&indented, text.Substring(begin, next)));
    if (newline == std::string::npos) break;
    begin = next;
  }
  return Value(std::move(indented));
}

Result Itself(const Value& value, Arguments arguments, Budget&) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  return value;
}

constexpr struct {
  std::string_view name;
  Filter filter;
} kFilters[] = {
    {"abs", Absolute},
    {"capitalize", MapText<Capitalized>},
    {"count", CountOf},
    {"d", Default},
    {"default", Default},
    {"float", AsFloat},
    {"indent", Indent},
    {"int", AsInteger},
    {"length", CountOf},
    {"lower", MapText<LowerCase>},
    {"replace", Replace},
    {"round", Round},
    {"safe", Itself},
    {"string", AsString},
    {"title", MapText<TitleCase>},
    {"tojson", ToJsonFilter},
    {"trim", Trim},
    {"upper", MapText<UpperCase>},
};

Filter FindFilter(std::string_view name) {
  for (const auto& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return FindListFilter(name);
}

}  // namespace

bool IsFilter(std::string_view name) { return FindFilter(name) != nullptr; }

absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& value,
                                  const CallArguments& arguments,
                                  Budget& budget) {
  const Filter filter = FindFilter(name);
  if (filter == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("no filter named '", name.substr(0, 40), "'"));
  }
  BATON_RETURN_IF_ERROR(budget.Steps(1));
  BATON_RETURN_IF_ERROR(budget.Enter());
  absl::Cleanup leave = [&budget] { budget.Leave(); };
  return filter(value, arguments, budget);
}

}  // namespace baton::router
