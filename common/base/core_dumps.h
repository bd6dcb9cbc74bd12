#ifndef BATON_COMMON_BASE_CORE_DUMPS_H_
#define BATON_COMMON_BASE_CORE_DUMPS_H_

#include "absl/status/status.h"

namespace baton {

// Keeps prompts, answers and KV out of core dumps, for this process and its
// children: no core file is written (RLIMIT_CORE 0), and a program to which the
// kernel pipes cores, whatever the limit, gets none of the memory
// (/proc/self/coredump_filter 0). The process stays traceable by its own user:
// UCX copies between processes with the same right (cross-memory attach).
absl::Status ForbidCoreDumps();

}  // namespace baton

#endif  // BATON_COMMON_BASE_CORE_DUMPS_H_
