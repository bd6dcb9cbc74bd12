#ifndef BATON_TESTS_LOAD_CORE_PINNING_H_
#define BATON_TESTS_LOAD_CORE_PINNING_H_

#include <sys/types.h>

#include <vector>

#include "absl/status/status.h"

namespace baton::testing {

// The cores that this process may use, in order, as it was when this was asked
// for the first time.
std::vector<int> UsableCores();

// Keeps all threads that the process has now, and those that they start, on
// these cores.
absl::Status PinToCores(pid_t pid, const std::vector<int>& cores);

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_CORE_PINNING_H_
