#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/filters.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/python_text.h"
#include "router/chat_template/text_writer.h"
#include "router/chat_template/value_tests.h"

namespace baton::router {
namespace {

using Arguments = const CallArguments&;
using Result = absl::StatusOr<Value>;

// "a.b.0" of a value, as map(attribute=...) and sort(attribute=...) take it.
Result AttributePath(Value value, const Value& path, Budget& budget) {
  if (!path.is_string()) return Subscript(value, path, budget);
  std::string_view rest = path.text().text();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool index =
        !part.empty() && part.size() < 10 &&
        part.find_first_not_of("0123456789") == std::string_view::npos;
    const Value key = index ? Value(int64_t{std::stoi(std::string(part))})
                            : Value::String(part);
    BATON_ASSIGN_OR_RETURN(value, Subscript(value, key, budget));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

Result First(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  return items.empty() ? Value::Undefined("first item") : items.front();
}

Result Last(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  return items.empty() ? Value::Undefined("last item") : items.back();
}

Result AsList(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(ValueList items, Iterate(value, budget));
  return Value(std::move(items));
}

Result Reverse(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  if (value.is_string()) {
    return Slice(value, Value(), Value(), Value(int64_t{-1}), budget);
  }
  BATON_ASSIGN_OR_RETURN(ValueList items, Iterate(value, budget));
  std::reverse(items.begin(), items.end());
  return Value(std::move(items));
}

Result Items(const Value& value, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  if (value.is_undefined()) return Value(ValueList());
  if (!value.is_dict()) return WrongType("items of a non-dict", value);
  BATON_RETURN_IF_ERROR(budget.Steps(2 * value.entries().size()));
  ValueList items;
  for (const auto& [key, member] : value.entries()) {
    items.emplace_back(ValueList{key, member});
  }
  return Value(std::move(items));
}

Result Join(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"d", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText separator, bound.TextOr(0, ""));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  MarkedText joined;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (bound.Has(1)) {
      BATON_ASSIGN_OR_RETURN(
          item, AttributePath(item, bound.ValueOr(1, Value()), budget));
    }
    BATON_ASSIGN_OR_RETURN(const MarkedText text, ToText(item, budget));
    if (i > 0) BATON_RETURN_IF_ERROR(budget.Append(&joined, separator));
    BATON_RETURN_IF_ERROR(budget.Append(&joined, text));
  }
  return Value(std::move(joined));
}

// Items with what they are ordered by; keys are all numbers or all strings.
using Keyed = std::vector<std::pair<Value, Value>>;

absl::StatusOr<Keyed> WithKeys(const ValueList& items, const Value& attribute,
                               bool case_sensitive, Budget& budget) {
  Keyed keyed;
  for (const Value& item : items) {
    Value key = item;
    if (!attribute.is_none()) {
      BATON_ASSIGN_OR_RETURN(key, AttributePath(item, attribute, budget));
    }
    if (key.is_string()) {
      BATON_RETURN_IF_ERROR(budget.Bytes(key.text().size()));
      if (!case_sensitive) key = Value(LowerCase(key.text()));
    } else if (!key.is_number() || std::isnan(key.real())) {
      return WrongType("not sortable", key);
    }
    if (!keyed.empty() && key.is_string() != keyed[0].first.is_string()) {
      return absl::InvalidArgumentError("strings and numbers do not compare");
    }
    keyed.emplace_back(std::move(key), item);
  }
  return keyed;
}

bool KeyLess(const Value& a, const Value& b) {
  return a.is_string() ? a.text().text() < b.text().text()
                       : a.real() < b.real();
}

absl::Status SortByKey(Keyed* keyed, bool reverse, Budget& budget) {
  const uint64_t rounds = static_cast<uint64_t>(std::log2(keyed->size() + 1));
  BATON_RETURN_IF_ERROR(budget.Steps(keyed->size()));
  for (const auto& [key, item] : *keyed) {
    if (key.is_string()) {
      BATON_RETURN_IF_ERROR(budget.Bytes(key.text().size() * rounds));
    }
  }
  std::stable_sort(
      keyed->begin(), keyed->end(), [reverse](const auto& a, const auto& b) {
        return reverse ? KeyLess(b.first, a.first) : KeyLess(a.first, b.first);
      });
  return absl::OkStatus();
}

Result Sort(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments,
                           {"reverse", "case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  BATON_ASSIGN_OR_RETURN(Keyed keyed, WithKeys(items, bound.ValueOr(2, Value()),
                                               bound.FlagOr(1, false), budget));
  BATON_RETURN_IF_ERROR(SortByKey(&keyed, bound.FlagOr(0, false), budget));
  ValueList sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return Value(std::move(sorted));
}

Result DictSort(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"case_sensitive", "by", "reverse"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText by, bound.TextOr(1, "key"));
  if (by.text() != "key" && by.text() != "value") {
    return absl::InvalidArgumentError("dictsort: by must be 'key' or 'value'");
  }
  BATON_ASSIGN_OR_RETURN(const Value pairs, Items(value, {}, budget));
  BATON_ASSIGN_OR_RETURN(
      Keyed keyed,
      WithKeys(pairs.items(), Value(int64_t{by.text() == "key" ? 0 : 1}),
               bound.FlagOr(0, false), budget));
  BATON_RETURN_IF_ERROR(SortByKey(&keyed, bound.FlagOr(2, false), budget));
  ValueList sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return Value(std::move(sorted));
}

Result Extreme(const Value& value, Arguments arguments, bool largest,
               Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  BATON_ASSIGN_OR_RETURN(const Keyed keyed,
                         WithKeys(items, bound.ValueOr(1, Value()),
                                  bound.FlagOr(0, false), budget));
  if (keyed.empty()) return Value::Undefined("item of an empty list");
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    const bool better = largest ? KeyLess(keyed[best].first, keyed[i].first)
                                : KeyLess(keyed[i].first, keyed[best].first);
    if (better) best = i;
  }
  return keyed[best].second;
}

Result Min(const Value& value, Arguments arguments, Budget& budget) {
  return Extreme(value, arguments, false, budget);
}

Result Max(const Value& value, Arguments arguments, Budget& budget) {
  return Extreme(value, arguments, true, budget);
}

Result Sum(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"attribute", "start"}));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  Value sum = bound.ValueOr(1, Value(int64_t{0}));
  for (const Value& item : items) {
    Value term = item;
    if (!bound.ValueOr(0, Value()).is_none()) {
      BATON_ASSIGN_OR_RETURN(
          term, AttributePath(item, bound.ValueOr(0, Value()), budget));
    }
    BATON_ASSIGN_OR_RETURN(sum, Arithmetic("+", sum, term, budget));
    BATON_RETURN_IF_ERROR(budget.Nesting(sum.nesting()));
  }
  return sum;
}

Result Unique(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  ValueList keys;
  ValueList unique;
  for (const Value& item : items) {
    Value key = item;
    if (bound.Has(1)) {
      BATON_ASSIGN_OR_RETURN(
          key, AttributePath(item, bound.ValueOr(1, Value()), budget));
    }
    if (key.is_string() && !bound.FlagOr(0, false)) {
      BATON_RETURN_IF_ERROR(budget.Bytes(key.text().size()));
      key = Value(LowerCase(key.text()));
    }
    bool seen = false;
    for (const Value& other : keys) {
      BATON_ASSIGN_OR_RETURN(seen, Equal(key, other, budget));
      if (seen) break;
    }
    if (seen) continue;
    keys.push_back(std::move(key));
    unique.push_back(item);
  }
  return Value(std::move(unique));
}

// The arguments behind the first `n` positional ones.
CallArguments Behind(size_t n, Arguments arguments) {
  CallArguments rest;
  rest.positional.assign(arguments.positional.begin() + n,
                         arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

absl::StatusOr<std::string> NameAt(size_t i, Arguments arguments,
                                   std::string_view what) {
  if (i >= arguments.positional.size() ||
      !arguments.positional[i].is_string()) {
    return absl::InvalidArgumentError(StrCat(what, " is missing"));
  }
  return arguments.positional[i].text().text();
}

Result Map(const Value& value, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  ValueList mapped;
  if (arguments.positional.empty()) {
    BATON_ASSIGN_OR_RETURN(
        const BoundArguments bound,
        BoundArguments::Bind(arguments, {"attribute", "default"}));
    BATON_ASSIGN_OR_RETURN(const Value path, bound.Required(0));
    for (const Value& item : items) {
      BATON_ASSIGN_OR_RETURN(Value member, AttributePath(item, path, budget));
      if (member.is_undefined()) member = bound.ValueOr(1, std::move(member));
      mapped.push_back(std::move(member));
    }
    return Value(std::move(mapped));
  }
  BATON_ASSIGN_OR_RETURN(const std::string name,
                         NameAt(0, arguments, "filter name"));
  const CallArguments rest = Behind(1, arguments);
  for (const Value& item : items) {
    BATON_ASSIGN_OR_RETURN(Value result, ApplyFilter(name, item, rest, budget));
    mapped.push_back(std::move(result));
  }
  return Value(std::move(mapped));
}

// select and reject, by the item itself or by one of its attributes.
Result Selected(const Value& value, Arguments arguments, bool by_attribute,
                bool wanted, Budget& budget) {
  const size_t test_at = by_attribute ? 1 : 0;
  Value path;
  if (by_attribute) {
    BATON_ASSIGN_OR_RETURN(std::string attribute,
                           NameAt(0, arguments, "attribute"));
    path = Value::String(attribute);
  }
  std::string test;
  CallArguments rest;
  if (arguments.positional.size() > test_at) {
    BATON_ASSIGN_OR_RETURN(test, NameAt(test_at, arguments, "test name"));
    if (!IsValueTest(test)) {
      return absl::InvalidArgumentError(
          StrCat("no test named '", test.substr(0, 40), "'"));
    }
    rest = Behind(test_at + 1, arguments);
  }
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(value, budget));
  ValueList selected;
  for (const Value& item : items) {
    Value tested = item;
    if (by_attribute) {
      BATON_ASSIGN_OR_RETURN(tested, AttributePath(item, path, budget));
    }
    bool holds = tested.truthy();
    if (!test.empty()) {
      BATON_ASSIGN_OR_RETURN(holds, ApplyTest(test, tested, rest, budget));
    }
    if (holds == wanted) selected.push_back(item);
  }
  return Value(std::move(selected));
}

template <bool kByAttribute, bool kWanted>
Result Select(const Value& value, Arguments arguments, Budget& budget) {
  return Selected(value, arguments, kByAttribute, kWanted, budget);
}

constexpr struct {
  std::string_view name;
  Filter filter;
} kListFilters[] = {
    {"dictsort", DictSort},
    {"first", First},
    {"items", Items},
    {"join", Join},
    {"last", Last},
    {"list", AsList},
    {"map", Map},
    {"max", Max},
    {"min", Min},
    {"reject", Select<false, false>},
    {"rejectattr", Select<true, false>},
    {"reverse", Reverse},
    {"select", Select<false, true>},
    {"selectattr", Select<true, true>},
    {"sort", Sort},
    {"sum", Sum},
    {"unique", Unique},
};

}  // namespace

Filter FindListFilter(std::string_view name) {
  for (const auto& entry : kListFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace baton::router
