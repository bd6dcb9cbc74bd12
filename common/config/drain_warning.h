#ifndef BATON_COMMON_CONFIG_DRAIN_WARNING_H_
#define BATON_COMMON_CONFIG_DRAIN_WARNING_H_

#include <string>

#include "common/base/monotonic_time.h"

namespace baton {

// What is wrong with a drain timeout, when the process needs up to `after` more
// to end, for a supervisor that kills it `grace` after SIGTERM; empty when
// nothing is or `grace` is 0 (unknown).
std::string DrainWarning(Duration timeout, Duration after, Duration grace);

}  // namespace baton

#endif  // BATON_COMMON_CONFIG_DRAIN_WARNING_H_
