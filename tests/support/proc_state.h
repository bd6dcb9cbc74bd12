#ifndef BATON_TESTS_SUPPORT_PROC_STATE_H_
#define BATON_TESTS_SUPPORT_PROC_STATE_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/status.h"

namespace baton::testing {

// What the kernel says about a process, whatever that says about itself.
// Processes that are gone are in state 0 and use nothing.

// 'R' running, 'S' sleeping, 'T' stopped, 'Z' dead and not reaped.
char ProcessState(pid_t pid);
// Every thread of it is in state 'T'.
bool AllThreadsStopped(pid_t pid);
uint64_t CpuTicks(pid_t pid);
uint64_t ResidentKib(pid_t pid);
int OpenFiles(pid_t pid);
// At most so many open files from now on; those open stay open.
absl::Status LimitOpenFiles(pid_t pid, uint64_t limit);

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_PROC_STATE_H_
