#ifndef BATON_COMMON_WORKER_PROCESS_MEMORY_H_
#define BATON_COMMON_WORKER_PROCESS_MEMORY_H_

#include <cstdint>

#include "common/worker/resource_limits.h"

namespace baton {

// What the kernel says about this process; 0 where it does not say.
struct ProcessMemory {
  uint64_t resident_bytes = 0;       // VmRSS
  uint64_t peak_resident_bytes = 0;  // VmHWM
  uint64_t huge_page_bytes = 0;      // AnonHugePages
};

// Reads /proc/self/status and /proc/self/smaps_rollup.
ProcessMemory ReadProcessMemory(const ReadSmallFile& read);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_PROCESS_MEMORY_H_
