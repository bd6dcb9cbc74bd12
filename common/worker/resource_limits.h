#ifndef BATON_COMMON_WORKER_RESOURCE_LIMITS_H_
#define BATON_COMMON_WORKER_RESOURCE_LIMITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace baton {

// A number and where it comes from, for the operator.
struct Limit {
  uint64_t value = 0;
  std::string reason;
};

// Contents of a small file, or nothing. `path` is absolute.
using ReadSmallFile =
    std::function<std::optional<std::string>(const std::string& path)>;
ReadSmallFile SystemFiles();

// Threads for a worker: the CPUs it may run on (`affinity`), or what the
// cgroup's cpu.max lets it use of them, rounded up; at least 1. Looks at the
// process's own cgroup and all above it (cgroup v2).
Limit ThreadLimit(uint32_t affinity, const ReadSmallFile& read);

// Bytes of memory the process may still take: MemAvailable, or what the
// tightest cgroup leaves.
Limit MemoryLimit(const ReadSmallFile& read);

// CPUs of the calling thread's affinity mask.
uint32_t AffinityCpus();

// "max 100000" and "150000 100000" as in cpu.max: CPUs, or nothing for no
// limit and for text that is not of that form.
std::optional<double> ParseCpuMax(std::string_view text);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_RESOURCE_LIMITS_H_
