#include "router/chat_template/text_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace baton::router {
namespace {

constexpr int64_t kMaxIndent = 64;

std::string Hex(uint32_t value, size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex(digits, '0');
  for (size_t i = digits; i-- > 0; value >>= 4) hex[i] = kDigits[value & 15];
  return hex;
}

// Appends `text`, with `escape(byte)` in place of bytes for which that is not
// empty; escapes keep the mark of their byte.
template <class Escape>
absl::Status AppendEscaped(const MarkedText& text, const Escape& escape,
                           MarkedText* out, Budget& budget) {
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string escaped = escape(text.text()[i]);
    if (escaped.empty()) continue;
    BATON_RETURN_IF_ERROR(budget.Append(out, text.Substring(copied, i)));
    BATON_RETURN_IF_ERROR(budget.Append(out, escaped, text.FromUser(i)));
    copied = i + 1;
  }
  return budget.Append(out, text.Substring(copied, text.size()));
}

std::string Scalar(const Value& value, bool json) {
  if (value.is_none()) return json ? "null" : "None";
  if (value.is_bool()) {
    if (json) return value.boolean() ? "true" : "false";
    return value.boolean() ? "True" : "False";
  }
  if (value.is_integer()) return StrCat(value.integer());
  const double real = value.real();
  if (json && std::isnan(real)) return "NaN";
  if (json && std::isinf(real)) return real > 0 ? "Infinity" : "-Infinity";
  return PythonFloat(real);
}

class ReprWriter {
 public:
  ReprWriter(MarkedText* out, Budget& budget) : out_(out), budget_(budget) {}

  absl::Status Write(const Value& value) {
    BATON_RETURN_IF_ERROR(budget_.Steps(1));
    if (value.is_string()) return WriteString(value.text());
    if (value.is_list()) {
      BATON_RETURN_IF_ERROR(Put("["));
      for (size_t i = 0; i < value.items().size(); ++i) {
        if (i > 0) BATON_RETURN_IF_ERROR(Put(", "));
        BATON_RETURN_IF_ERROR(Write(value.items()[i]));
      }
      return Put("]");
    }
    if (value.is_dict()) {
      BATON_RETURN_IF_ERROR(Put("{"));
      for (size_t i = 0; i < value.entries().size(); ++i) {
        if (i > 0) BATON_RETURN_IF_ERROR(Put(", "));
        BATON_RETURN_IF_ERROR(Write(value.entries()[i].first));
        BATON_RETURN_IF_ERROR(Put(": "));
        BATON_RETURN_IF_ERROR(Write(value.entries()[i].second));
      }
      return Put("}");
    }
    if (value.is_undefined()) return Put("Undefined");
    if (value.is_number() || value.is_none()) return Put(Scalar(value, false));
    return Put(StrCat("<", value.type_name(), ">"));
  }

 private:
  absl::Status Put(std::string_view text) { return budget_.Append(out_, text); }

  absl::Status WriteString(const MarkedText& text) {
    const bool has_single = text.text().find('\'') != std::string::npos;
    const bool has_double = text.text().find('"') != std::string::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    BATON_RETURN_IF_ERROR(Put(std::string(1, quote)));
    BATON_RETURN_IF_ERROR(AppendEscaped(
        text,
        [quote](char c) -> std::string {
          if (c == quote || c == '\\') return {'\\', c};
          if (c == '\n') return "\\n";
          if (c == '\r') return "\\r";
          if (c == '\t') return "\\t";
          const uint8_t byte = static_cast<uint8_t>(c);
          return byte < 0x20 || byte == 0x7f ? "\\x" + Hex(byte, 2) : "";
        },
        out_, budget_));
    return Put(std::string(1, quote));
  }

  MarkedText* out_;
  Budget& budget_;
};

class JsonWriter {
 public:
  JsonWriter(std::optional<int64_t> indent, bool sort_keys, MarkedText* out,
             Budget& budget)
      : indent_(indent), sort_keys_(sort_keys), out_(out), budget_(budget) {}

  absl::Status Write(const Value& value, int64_t level) {
    BATON_RETURN_IF_ERROR(budget_.Steps(1));
    if (value.is_string()) return WriteString(value.text());
    if (value.is_list()) return WriteList(value.items(), level);
    if (value.is_dict()) return WriteDict(value.entries(), level);
    if (value.is_number() || value.is_none()) return Put(Scalar(value, true));
    return absl::InvalidArgumentError(
        StrCat(value.type_name(), " is not JSON serializable"));
  }

 private:
  absl::Status Put(std::string_view text) { return budget_.Append(out_, text); }

  absl::Status Break(int64_t level, bool first) {
    if (!indent_.has_value()) return first ? absl::OkStatus() : Put(", ");
    const int64_t width = std::clamp<int64_t>(*indent_, 0, kMaxIndent);
    return Put(StrCat(first ? "\n" : ",\n",
                      std::string(static_cast<size_t>(level * width), ' ')));
  }

  absl::Status End(int64_t level, std::string_view close) {
    if (indent_.has_value()) BATON_RETURN_IF_ERROR(Break(level, true));
    return Put(close);
  }

  absl::Status WriteList(const ValueList& items, int64_t level) {
    if (items.empty()) return Put("[]");
    BATON_RETURN_IF_ERROR(Put("["));
    for (size_t i = 0; i < items.size(); ++i) {
      BATON_RETURN_IF_ERROR(Break(level + 1, i == 0));
      BATON_RETURN_IF_ERROR(Write(items[i], level + 1));
    }
    return End(level, "]");
  }

  absl::Status WriteDict(const ValueEntries& entries, int64_t level) {
    if (entries.empty()) return Put("{}");
    std::vector<std::pair<MarkedText, const Value*>> members;
    for (const auto& [key, value] : entries) {
      if (key.is_string()) {
        members.emplace_back(key.text(), &value);
      } else if (key.is_number() || key.is_none()) {
        members.emplace_back(MarkedText(Scalar(key, true)), &value);
      } else {
        return absl::InvalidArgumentError("JSON keys must be strings");
      }
    }
    if (sort_keys_) {
      std::stable_sort(members.begin(), members.end(),
                       [](const auto& a, const auto& b) {
                         return a.first.text() < b.first.text();
                       });
    }
    BATON_RETURN_IF_ERROR(Put("{"));
    for (size_t i = 0; i < members.size(); ++i) {
      BATON_RETURN_IF_ERROR(Break(level + 1, i == 0));
      BATON_RETURN_IF_ERROR(WriteString(members[i].first));
      BATON_RETURN_IF_ERROR(Put(": "));
      BATON_RETURN_IF_ERROR(Write(*members[i].second, level + 1));
    }
    return End(level, "}");
  }

  absl::Status WriteString(const MarkedText& text) {
    BATON_RETURN_IF_ERROR(Put("\""));
    BATON_RETURN_IF_ERROR(AppendEscaped(
        text,
        [](char c) -> std::string {
          if (c == '"' || c == '\\') return {'\\', c};
          if (c == '\n') return "\\n";
          if (c == '\r') return "\\r";
          if (c == '\t') return "\\t";
          if (c == '\f') return "\\f";
          if (c == '\b') return "\\b";
          const uint8_t byte = static_cast<uint8_t>(c);
          return byte < 0x20 ? "\\u" + Hex(byte, 4) : "";
        },
        out_, budget_));
    return Put("\"");
  }

  const std::optional<int64_t> indent_;
  const bool sort_keys_;
  MarkedText* out_;
  Budget& budget_;
};

}  // namespace

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double magnitude = std::abs(value);
  const bool plain = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 plain ? std::chars_format::fixed
                                       : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

absl::StatusOr<MarkedText> ToText(const Value& value, Budget& budget) {
  if (value.is_string()) {
    BATON_RETURN_IF_ERROR(budget.Bytes(value.text().size()));
    return value.text();
  }
  MarkedText text;
  if (value.is_undefined()) return text;
  BATON_RETURN_IF_ERROR(ReprWriter(&text, budget).Write(value));
  return text;
}

absl::StatusOr<MarkedText> ToJson(const Value& value,
                                  std::optional<int64_t> indent, bool sort_keys,
                                  Budget& budget) {
  MarkedText text;
  BATON_RETURN_IF_ERROR(
      JsonWriter(indent, sort_keys, &text, budget).Write(value, 0));
  return text;
}

}  // namespace baton::router
