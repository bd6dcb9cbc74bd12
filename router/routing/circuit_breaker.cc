#include "router/routing/circuit_breaker.h"

#include <algorithm>
#include <cmath>

#include "common/base/strings.h"

namespace baton::router {

bool CircuitBreaker::Advance(MonotonicTime now) {
  if (state_ != State::kOpen || now < until_) return false;
  state_ = State::kHalfOpen;
  return true;
}

bool CircuitBreaker::Success(MonotonicTime) {
  if (state_ == State::kOpen) return false;
  failures_ = 0;
  if (state_ == State::kClosed) return false;
  state_ = State::kClosed;
  reason_.clear();
  return true;
}

bool CircuitBreaker::Failure(const BreakerLimits& limits, std::string_view why,
                             MonotonicTime now, Jitter* jitter) {
  ++failures_;
  if (state_ == State::kHalfOpen) {
    return Trip(limits, StrCat("failed its trial: ", why), now, jitter);
  }
  if (failures_ < limits.failures) return false;
  return Trip(limits, StrCat(failures_, " failures in a row, the last: ", why),
              now, jitter);
}

bool CircuitBreaker::SessionLost(const BreakerLimits& limits,
                                 std::string_view why, MonotonicTime now,
                                 Jitter* jitter) {
  losses_ *=
      std::exp2(-Seconds(now - last_loss_) / Seconds(limits.loss_half_life));
  losses_ += 1;
  last_loss_ = now;
  if (losses_ < limits.session_losses && state_ != State::kHalfOpen) {
    return false;
  }
  return Trip(limits, StrCat("lost sessions, the last: ", why), now, jitter);
}

bool CircuitBreaker::Trip(const BreakerLimits& limits, std::string_view why,
                          MonotonicTime now, Jitter* jitter) {
  if (state_ == State::kOpen) return false;
  const bool forgiven =
      pause_ == Duration::zero() || now - until_ >= limits.forgiven;
  pause_ = forgiven ? limits.first_pause
                    : std::min(2 * pause_, limits.longest_pause);
  state_ = State::kOpen;
  failures_ = 0;
  until_ = now + jitter->Spread(pause_);
  reason_ = std::string(why);
  return true;
}

}  // namespace baton::router
