#include "kv_transfer/fault/fault_spec.h"

#include <charconv>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr std::string_view kNames[] = {"refuse",    "fail",    "late",
                                       "duplicate", "reorder", "truncate",
                                       "flip",      "drop"};

std::optional<uint64_t> Positive(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      value == 0) {
    return std::nullopt;
  }
  return value;
}

std::optional<FaultSpec> Parse(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  FaultSpec spec;
  size_t kind = 0;
  while (kind < std::size(kNames) && kNames[kind] != text.substr(0, colon)) {
    ++kind;
  }
  if (kind == std::size(kNames)) return std::nullopt;
  spec.kind = static_cast<FaultKind>(kind);
  const std::string_view numbers = text.substr(colon + 1);
  const size_t slash = numbers.find('/');
  const auto first = Positive(numbers.substr(0, slash));
  if (!first) return std::nullopt;
  spec.first = *first;
  if (slash == std::string_view::npos) return spec;
  const auto period = Positive(numbers.substr(slash + 1));
  if (!period) return std::nullopt;
  spec.period = *period;
  return spec;
}

}  // namespace

std::string_view FaultKindName(FaultKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

absl::StatusOr<std::vector<FaultSpec>> ParseFaultSpecs(std::string_view text) {
  std::vector<FaultSpec> specs;
  if (text.empty()) return specs;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text), ',');
  for (const std::string& part : parts) {
    const auto spec = Parse(part);
    if (!spec) {
      return absl::InvalidArgumentError(StrCat(
          "fault: got '", part.substr(0, 64),
          "', allowed KIND:FIRST or KIND:FIRST/PERIOD with a KIND of refuse, "
          "fail, late, duplicate, reorder, truncate, flip, drop"));
    }
    specs.push_back(*spec);
  }
  return specs;
}

}  // namespace baton::transfer
