#include "router/request_flow/attempt_pace.h"

namespace baton::router {

Pace PaceOf(const Attempt& attempt, bool expected, MonotonicTime deadline,
            MonotonicTime now) {
  if (!expected) return Pace::kUnknown;
  if (attempt.phase == AttemptPhase::kClosing) {
    return attempt.decode_done ? Pace::kInTime : Pace::kUnknown;
  }
  const bool decoding =
      attempt.alone() || attempt.phase == AttemptPhase::kDecoding;
  return decoding && now + kClockSlack >= deadline ? Pace::kLate
                                                   : Pace::kUnknown;
}

}  // namespace baton::router
