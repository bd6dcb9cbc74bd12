#ifndef BATON_COMMON_BASE_MONOTONIC_TIME_H_
#define BATON_COMMON_BASE_MONOTONIC_TIME_H_

#include <chrono>

namespace baton {

// Every deadline and duration inside Baton. Wall-clock time appears only in
// logs. Pure cores receive `now` as an argument and never read a clock.
using Duration = std::chrono::nanoseconds;
using MonotonicTime =
    std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr MonotonicTime kNever = MonotonicTime::max();

inline MonotonicTime MonotonicNow() {
  return std::chrono::steady_clock::now();
}

inline double Milliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

inline double Seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace baton

#endif  // BATON_COMMON_BASE_MONOTONIC_TIME_H_
