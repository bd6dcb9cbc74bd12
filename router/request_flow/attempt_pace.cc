#include "router/request_flow/attempt_pace.h"

#include <chrono>

namespace baton::router {
namespace {

// An attempt that ends so shortly before its deadline ends for it: clocks and
// clients differ.
constexpr Duration kSlack = std::chrono::milliseconds(50);

}  // namespace

Pace PaceOf(const Attempt& attempt, bool expected, MonotonicTime deadline,
            MonotonicTime now) {
  if (!expected) return Pace::kUnknown;
  if (attempt.phase == AttemptPhase::kClosing) {
    return attempt.decode_done ? Pace::kInTime : Pace::kUnknown;
  }
  const bool decoding =
      attempt.alone() || attempt.phase == AttemptPhase::kDecoding;
  return decoding && now + kSlack >= deadline ? Pace::kLate : Pace::kUnknown;
}

}  // namespace baton::router
