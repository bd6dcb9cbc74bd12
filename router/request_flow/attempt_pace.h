#ifndef BATON_ROUTER_REQUEST_FLOW_ATTEMPT_PACE_H_
#define BATON_ROUTER_REQUEST_FLOW_ATTEMPT_PACE_H_

#include <chrono>

#include "common/base/monotonic_time.h"
#include "router/request_flow/attempt.h"

namespace baton::router {

// Clocks and clients differ: what ends so shortly before its deadline ends for
// it.
inline constexpr Duration kClockSlack = std::chrono::milliseconds(50);

enum class Pace { kUnknown, kInTime, kLate };

// How the decode worker of an attempt that ends at `now` kept up with its
// batch. `expected`: others waited for its place, and it was to end in time;
// without that it says nothing about the batch. In time are answers that the
// worker itself has closed, late those that still grew at their deadline.
Pace PaceOf(const Attempt& attempt, bool expected, MonotonicTime deadline,
            MonotonicTime now);

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_ATTEMPT_PACE_H_
