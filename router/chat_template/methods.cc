#include "router/chat_template/methods.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "router/chat_template/operations.h"
#include "router/chat_template/python_text.h"

namespace baton::router {
namespace {

using Arguments = const CallArguments&;
using Result = absl::StatusOr<Value>;
using Method = Result (*)(const Value&, Arguments, Budget&);

// The part of `text` without characters of `set` at the chosen ends.
MarkedText StrippedOf(const MarkedText& text, const std::string* set, bool left,
                      bool right) {
  std::string_view kept = text.text();
  if (set == nullptr) {
    if (left) kept = StripLeft(kept);
    if (right) kept = StripRight(kept);
  } else {
    const std::vector<size_t> offsets = CharacterOffsets(kept);
    const auto in_set = [&](size_t i) {
      return FindText(*set,
                      kept.substr(offsets[i], offsets[i + 1] - offsets[i])) !=
             std::string_view::npos;
    };
    size_t begin = 0;
    size_t end = offsets.size() - 1;
    while (left && begin < end && in_set(begin)) ++begin;
    while (right && end > begin && in_set(end - 1)) --end;
    kept = kept.substr(offsets[begin], offsets[end] - offsets[begin]);
  }
  const size_t at = static_cast<size_t>(kept.data() - text.text().data());
  return text.Substring(at, at + kept.size());
}

template <bool kLeft, bool kRight>
Result Strip(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"chars"}));
  BATON_RETURN_IF_ERROR(budget.Bytes(receiver.text().size()));
  if (bound.ValueOr(0, Value()).is_none()) {
    return Value(StrippedOf(receiver.text(), nullptr, kLeft, kRight));
  }
  BATON_ASSIGN_OR_RETURN(const MarkedText set, bound.Text(0));
  BATON_RETURN_IF_ERROR(budget.Bytes(set.size()));
  return Value(StrippedOf(receiver.text(), &set.text(), kLeft, kRight));
}

// startswith and endswith take one string or several.
template <bool kStart>
Result HasAffix(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"affix"}));
  BATON_ASSIGN_OR_RETURN(const Value wanted, bound.Required(0));
  const ValueList affixes =
      wanted.is_list() ? wanted.items() : ValueList{wanted};
  const std::string& text = receiver.text().text();
  for (const Value& affix : affixes) {
    if (!affix.is_string()) return WrongType("affix must be a string", affix);
    BATON_RETURN_IF_ERROR(budget.Bytes(affix.text().size()));
    const std::string& part = affix.text().text();
    if (kStart ? text.starts_with(part) : text.ends_with(part)) {
      return Value(true);
    }
  }
  return Value(false);
}

template <bool kStart>
Result RemoveAffix(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"affix"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText affix, bound.Text(0));
  const MarkedText& text = receiver.text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  const bool has = kStart ? text.text().starts_with(affix.text())
                          : text.text().ends_with(affix.text());
  if (!has) return receiver;
  return Value(kStart ? text.Substring(affix.size(), text.size())
                      : text.Substring(0, text.size() - affix.size()));
}

template <MarkedText (*kMap)(const MarkedText&)>
Result MapText(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_RETURN_IF_ERROR(budget.Bytes(receiver.text().size()));
  return Value(kMap(receiver.text()));
}

// All characters are of a kind, and there is one.
template <bool (*kIs)(uint32_t)>
Result IsAll(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_RETURN_IF_ERROR(budget.Bytes(receiver.text().size()));
  std::string_view rest = receiver.text().text();
  if (rest.empty()) return Value(false);
  while (!rest.empty()) {
    const Utf8Prefix prefix = ScanUtf8(rest);
    if (prefix.kind != Utf8Prefix::Kind::kCodePoint ||
        !kIs(prefix.code_point)) {
      return Value(false);
    }
    rest.remove_prefix(prefix.length);
  }
  return Value(true);
}

bool IsAsciiDigit(uint32_t c) { return c >= '0' && c <= '9'; }

Result Replace(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      BoundArguments::Bind(arguments, {"old", "new", "count"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText old, bound.Text(0));
  BATON_ASSIGN_OR_RETURN(const MarkedText fresh, bound.Text(1));
  int64_t count = -1;
  if (!bound.ValueOr(2, Value()).is_none()) {
    BATON_ASSIGN_OR_RETURN(count, bound.IntegerOr(2, -1));
  }
  const MarkedText& text = receiver.text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  MarkedText replaced;
  size_t copied = 0;
  size_t search = 0;
  while (count-- != 0) {
    const size_t found = FindText(text.text(), old.text(), search);
    if (found == std::string_view::npos) break;
    BATON_RETURN_IF_ERROR(
        budget.Append(&replaced, text.Substring(copied, found)));
    BATON_RETURN_IF_ERROR(budget.Append(&replaced, fresh));
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    copied = found + old.size();
    search = copied;
    if (old.size() == 0) {
      if (found >= text.size()) break;
      search += ScanUtf8(std::string_view(text.text()).substr(found)).length;
    }
  }
  BATON_RETURN_IF_ERROR(
      budget.Append(&replaced, text.Substring(copied, text.size())));
  return Value(std::move(replaced));
}

absl::StatusOr<ValueList> SplitAtSpace(const MarkedText& text, int64_t most,
                                       Budget& budget) {
  ValueList parts;
  std::string_view rest = StripLeft(text.text());
  while (!rest.empty()) {
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    const size_t begin = text.size() - rest.size();
    if (most-- == 0) {
      parts.emplace_back(text.Substring(begin, text.size()));
      break;
    }
    size_t end = begin;
    while (end < text.size()) {
      const Utf8Prefix prefix =
          ScanUtf8(std::string_view(text.text()).substr(end));
      if (IsPythonSpace(prefix.code_point) &&
          prefix.kind == Utf8Prefix::Kind::kCodePoint) {
        break;
      }
      end += prefix.length;
    }
    parts.emplace_back(text.Substring(begin, end));
    rest = StripLeft(std::string_view(text.text()).substr(end));
  }
  return parts;
}

absl::StatusOr<ValueList> SplitAt(const MarkedText& text,
                                  const std::string& separator, int64_t most,
                                  Budget& budget) {
  if (separator.empty()) return absl::InvalidArgumentError("empty separator");
  ValueList parts;
  size_t begin = 0;
  while (most-- != 0) {
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    const size_t end = FindText(text.text(), separator, begin);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.Substring(begin, end));
    begin = end + separator.size();
  }
  parts.emplace_back(text.Substring(begin, text.size()));
  return parts;
}

absl::StatusOr<ValueList> SplitFromRight(const MarkedText& text,
                                         const std::string& separator,
                                         int64_t most, Budget& budget) {
  if (most < 0) return SplitAt(text, separator, most, budget);
  if (separator.empty()) return absl::InvalidArgumentError("empty separator");
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size() * separator.size()));
  ValueList parts;
  size_t end = text.size();
  while (most-- != 0) {
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    if (end < separator.size()) break;
    const size_t begin = text.text().rfind(separator, end - separator.size());
    if (begin == std::string::npos) break;
    parts.emplace_back(text.Substring(begin + separator.size(), end));
    end = begin;
  }
  parts.emplace_back(text.Substring(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool kFromRight>
Result Split(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"sep", "maxsplit"}));
  BATON_ASSIGN_OR_RETURN(const int64_t most, bound.IntegerOr(1, -1));
  const MarkedText& text = receiver.text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  absl::StatusOr<ValueList> parts;
  if (bound.ValueOr(0, Value()).is_none()) {
    if (kFromRight && most >= 0) {
      return absl::InvalidArgumentError(
          "rsplit: maxsplit needs a separator here");
    }
    parts = SplitAtSpace(text, most, budget);
  } else {
    BATON_ASSIGN_OR_RETURN(const MarkedText separator, bound.Text(0));
    parts = kFromRight ? SplitFromRight(text, separator.text(), most, budget)
                       : SplitAt(text, separator.text(), most, budget);
  }
  if (!parts.ok()) return parts.status();
  return Value(*std::move(parts));
}

Result SplitLines(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"keepends"}));
  const MarkedText& text = receiver.text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  ValueList lines;
  for (size_t begin = 0; begin < text.size();) {
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    const size_t end =
        std::min(text.text().find_first_of("\r\n", begin), text.size());
    size_t next = std::min(end + 1, text.size());
    if (next < text.size() && text.text()[end] == '\r' &&
        text.text()[next] == '\n') {
      ++next;
    }
    lines.emplace_back(
        text.Substring(begin, bound.FlagOr(0, false) ? next : end));
    begin = next;
  }
  return Value(std::move(lines));
}

// Character index of the first or last occurrence, -1 when there is none.
template <bool kLast>
Result Find(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"sub"}));
  BATON_ASSIGN_OR_RETURN(const MarkedText wanted, bound.Text(0));
  const std::string& text = receiver.text().text();
  BATON_RETURN_IF_ERROR(budget.Bytes(text.size()));
  size_t found = FindText(text, wanted.text());
  if (kLast && found != std::string::npos) {
    for (size_t next = found; next != std::string::npos;
         next = FindText(text, wanted.text(), next + 1)) {
      BATON_RETURN_IF_ERROR(budget.Bytes(wanted.size() + 1));
      found = next;
    }
  }
  if (found == std::string::npos) return Value(int64_t{-1});
  return Value(static_cast<int64_t>(
      CharacterCount(std::string_view(text).substr(0, found))));
}

Result Count(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"sub"}));
  BATON_ASSIGN_OR_RETURN(const Value wanted, bound.Required(0));
  int64_t count = 0;
  if (receiver.is_list()) {
    for (const Value& item : receiver.items()) {
      BATON_ASSIGN_OR_RETURN(const bool equal, Equal(item, wanted, budget));
      count += equal ? 1 : 0;
    }
    return Value(count);
  }
  BATON_ASSIGN_OR_RETURN(const MarkedText sub, bound.Text(0));
  BATON_RETURN_IF_ERROR(budget.Bytes(receiver.text().size()));
  if (sub.size() == 0) {
    return Value(
        static_cast<int64_t>(CharacterCount(receiver.text().text()) + 1));
  }
  for (size_t at = FindText(receiver.text().text(), sub.text());
       at != std::string_view::npos;
       at = FindText(receiver.text().text(), sub.text(), at + sub.size())) {
    BATON_RETURN_IF_ERROR(budget.Steps(1));
    ++count;
  }
  return Value(count);
}

Result Join(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"iterable"}));
  BATON_ASSIGN_OR_RETURN(const Value iterable, bound.Required(0));
  BATON_ASSIGN_OR_RETURN(const ValueList items, Iterate(iterable, budget));
  MarkedText joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      return WrongType("join: items must be strings", items[i]);
    }
    if (i > 0) BATON_RETURN_IF_ERROR(budget.Append(&joined, receiver.text()));
    BATON_RETURN_IF_ERROR(budget.Append(&joined, items[i].text()));
  }
  return Value(std::move(joined));
}

Result Keys(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_ASSIGN_OR_RETURN(ValueList keys, Iterate(receiver, budget));
  return Value(std::move(keys));
}

Result Values(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_RETURN_IF_ERROR(budget.Steps(receiver.entries().size()));
  ValueList values;
  for (const auto& [key, value] : receiver.entries()) values.push_back(value);
  return Value(std::move(values));
}

Result Items(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_RETURN_IF_ERROR(BoundArguments::Bind(arguments, {}).status());
  BATON_RETURN_IF_ERROR(budget.Steps(2 * receiver.entries().size()));
  ValueList items;
  for (const auto& [key, value] : receiver.entries()) {
    items.emplace_back(ValueList{key, value});
  }
  return Value(std::move(items));
}

Result Get(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"key", "default"}));
  BATON_ASSIGN_OR_RETURN(const Value key, bound.Required(0));
  BATON_ASSIGN_OR_RETURN(std::optional<Value> found,
                         Lookup(receiver, key, budget));
  return found.has_value() ? *std::move(found) : bound.ValueOr(1, Value());
}

Result Index(const Value& receiver, Arguments arguments, Budget& budget) {
  BATON_ASSIGN_OR_RETURN(const BoundArguments bound,
                         BoundArguments::Bind(arguments, {"value"}));
  BATON_ASSIGN_OR_RETURN(const Value wanted, bound.Required(0));
  for (size_t i = 0; i < receiver.items().size(); ++i) {
    BATON_ASSIGN_OR_RETURN(const bool equal,
                           Equal(receiver.items()[i], wanted, budget));
    if (equal) return Value(static_cast<int64_t>(i));
  }
  return absl::InvalidArgumentError("index: value is not in list");
}

struct Entry {
  std::string_view name;
  Method method;
};

constexpr Entry kStringMethods[] = {
    {"capitalize", MapText<Capitalized>},
    {"count", Count},
    {"endswith", HasAffix<false>},
    {"find", Find<false>},
    {"isdigit", IsAll<IsAsciiDigit>},
    {"isspace", IsAll<IsPythonSpace>},
    {"join", Join},
    {"lower", MapText<LowerCase>},
    {"lstrip", Strip<true, false>},
    {"removeprefix", RemoveAffix<true>},
    {"removesuffix", RemoveAffix<false>},
    {"replace", Replace},
    {"rfind", Find<true>},
    {"rsplit", Split<true>},
    {"rstrip", Strip<false, true>},
    {"split", Split<false>},
    {"splitlines", SplitLines},
    {"startswith", HasAffix<true>},
    {"strip", Strip<true, true>},
    {"title", MapText<TitleCase>},
    {"upper", MapText<UpperCase>},
};
constexpr Entry kDictMethods[] = {
    {"get", Get}, {"items", Items}, {"keys", Keys}, {"values", Values}};
constexpr Entry kListMethods[] = {{"count", Count}, {"index", Index}};

Method FindMethod(const Value& receiver, std::string_view name) {
  const auto find = [name](const auto& entries) -> Method {
    for (const Entry& entry : entries) {
      if (entry.name == name) return entry.method;
    }
    return nullptr;
  };
  if (receiver.is_string()) return find(kStringMethods);
  if (receiver.is_dict()) return find(kDictMethods);
  if (receiver.is_list()) return find(kListMethods);
  return nullptr;
}

}  // namespace

bool HasMethod(const Value& receiver, std::string_view name) {
  return FindMethod(receiver, name) != nullptr;
}

absl::StatusOr<Value> CallMethod(std::string_view name, const Value& receiver,
                                 const CallArguments& arguments,
                                 Budget& budget) {
  const Method method = FindMethod(receiver, name);
  BATON_CHECK(method != nullptr);
  return method(receiver, arguments, budget);
}

}  // namespace baton::router
