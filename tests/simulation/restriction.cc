#include "tests/simulation/restriction.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton::simulation {

std::string Restriction::ToFlags() const {
  std::string flags;
  if (!without.empty()) StrAppend(&flags, " --without ", without.ToString());
  auto at_most = [&flags](std::string_view name,
                          const std::optional<uint32_t>& number) {
    if (number.has_value()) StrAppend(&flags, " --", name, " ", *number);
  };
  at_most("each", each);
  if (requests.has_value()) {
    const std::string numbers = absl::StrJoin(*requests, ",");
    StrAppend(&flags, " --requests ", numbers.empty() ? "none" : numbers);
  }
  at_most("controls", controls);
  at_most("routers", routers);
  at_most("prefill", prefill);
  at_most("decode", decode);
  if (salt != 0) StrAppend(&flags, " --salt ", salt);
  return flags;
}

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text) {
  std::vector<uint32_t> numbers;
  if (text == "none") return numbers;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) {
      return absl::InvalidArgumentError(
          StrCat("got ", ToStd(word), ", allowed numbers like 0,3,7 or none"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace baton::simulation
