#include "common/config/config_values.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

struct Unit {
  std::string_view name;
  int64_t size;
};

constexpr Unit kByteUnits[] = {
    {"TiB", int64_t{1} << 40}, {"GiB", 1 << 30},  {"MiB", 1 << 20},
    {"KiB", 1 << 10},          {"B", 1},          {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},     {"MB", 1'000'000}, {"KB", 1'000},
};
constexpr int kBinaryUnits = 4;

constexpr Unit kTimeUnits[] = {
    {"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1},
};

absl::Status Expected(std::string_view what, std::string_view got) {
  return absl::InvalidArgumentError(
      StrCat("expected ", what, " (got \"", got.substr(0, 200), "\")"));
}

// `text` = number immediately followed by a unit of `units`; the number of the
// smallest units, below 2^62, or -1.
int64_t ParseQuantity(std::string_view text, absl::Span<const Unit> units,
                      bool unit_required) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, end);
  const std::string_view name =
      end == std::string_view::npos ? "" : text.substr(end);
  int64_t size = -1;
  for (const Unit& unit : units) {
    if (unit.name == name) size = unit.size;
  }
  if (name.empty() && (!unit_required || number == "0")) size = 1;
  double value = 0;
  if (size < 0 || number.empty() || !absl::SimpleAtod(ToAbsl(number), &value)) {
    return -1;
  }
  int64_t whole = 0;
  if (absl::SimpleAtoi(ToAbsl(number), &whole)) {
    constexpr int64_t kLargest = (int64_t{1} << 62) - 1;
    return whole <= kLargest / size ? whole * size : -1;
  }
  value = std::floor(value * static_cast<double>(size));
  return value < 0x1p62 ? static_cast<int64_t>(value) : -1;
}

std::string FormatQuantity(int64_t value, absl::Span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value >= unit.size && value % unit.size == 0) {
      return StrCat(value / unit.size, unit.name);
    }
  }
  return StrCat(value);
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(std::string_view text) {
  const int64_t bytes = ParseQuantity(text, kByteUnits, false);
  if (bytes < 0) return Expected("size like 512MiB", text);
  return static_cast<uint64_t>(bytes);
}

std::string FormatByteSize(uint64_t bytes) {
  return FormatQuantity(static_cast<int64_t>(bytes),
                        absl::MakeConstSpan(kByteUnits, kBinaryUnits));
}

absl::StatusOr<Duration> ParseDuration(std::string_view text) {
  const int64_t nanoseconds = ParseQuantity(text, kTimeUnits, true);
  if (nanoseconds < 0) return Expected("duration like 30s or 500ms", text);
  return Duration(nanoseconds);
}

std::string FormatDuration(Duration duration) {
  return FormatQuantity(duration.count(), kTimeUnits);
}

absl::StatusOr<std::vector<std::string>> ParseHostPortList(
    std::string_view text) {
  std::vector<std::string> list;
  if (absl::StripAsciiWhitespace(ToAbsl(text)).empty()) return list;
  std::set<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    BATON_ASSIGN_OR_RETURN(
        const HostPort item,
        ParseHostPort(ToStd(absl::StripAsciiWhitespace(part))));
    const std::string name = item.ToString();
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(StrCat(name, " is given twice"));
    }
    list.push_back(name);
  }
  return list;
}

std::string ClosestName(std::string_view name,
                        const std::vector<std::string>& names) {
  constexpr size_t kShortestPrefix = 3;
  std::string closest;
  size_t best = std::clamp<size_t>(name.size() / 3, 2, 4) + 1;
  for (const std::string& candidate : names) {
    const bool abbreviated =
        name.size() >= kShortestPrefix && candidate.starts_with(name);
    const size_t distance =
        abbreviated ? 1 : EditDistance(name.substr(0, 64), candidate);
    if (distance < best) {
      best = distance;
      closest = candidate;
    }
  }
  return closest;
}

}  // namespace baton
