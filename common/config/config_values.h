#ifndef BATON_COMMON_CONFIG_CONFIG_VALUES_H_
#define BATON_COMMON_CONFIG_CONFIG_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"

namespace baton {

// What people write in flags, variables and files. Every error is
// InvalidArgument "expected X (got "TEXT")".

// "4096", "64KiB", "512MiB", "2GiB", "1TiB", or decimal "10KB".."10TB"; upper
// and lower case as shown. Fractions ("1.5GiB") are rounded down to bytes.
absl::StatusOr<uint64_t> ParseByteSize(std::string_view text);
// The largest binary unit that divides it: "512MiB", "1000".
std::string FormatByteSize(uint64_t bytes);

// "100us", "500ms", "30s", "1.5s", "5m", "2h"; "0" needs no unit.
absl::StatusOr<Duration> ParseDuration(std::string_view text);
// "500ms", "30s", "2h": the largest unit that divides it.
std::string FormatDuration(Duration duration);

// "host:port,host:port"; spaces around commas are dropped. Empty text is an
// empty list; a host:port given twice is an error that names it.
absl::StatusOr<std::vector<std::string>> ParseHostPortList(
    std::string_view text);

// The one of `names` that is most likely meant by the misspelt `name`, or ""
// when none is close.
std::string ClosestName(std::string_view name,
                        const std::vector<std::string>& names);

}  // namespace baton

#endif  // BATON_COMMON_CONFIG_CONFIG_VALUES_H_
