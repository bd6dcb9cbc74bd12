#ifndef BATON_ROUTER_ROUTING_CIRCUIT_BREAKER_H_
#define BATON_ROUTER_ROUTING_CIRCUIT_BREAKER_H_

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/monotonic_time.h"
#include "router/admission/jitter.h"

namespace baton::router {

struct BreakerLimits {
  int failures = 5;  // in a row
  // Lost sessions; each counts half as much after every half-life. One
  // restart is no reason, a worker that dies every few seconds is.
  double session_losses = 2.5;
  Duration loss_half_life = std::chrono::seconds(15);
  // How long it stays open: doubles from opening to opening, and is short
  // again after `forgiven` without one.
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(5);
  Duration forgiven = std::chrono::seconds(60);
};

// Judges one worker by its failures. Closed: work flows. Open: none does, for a
// jittered pause. Half-open: one attempt at a time, a client's or the router's
// own, until one of them succeeds (closed) or fails (open, longer). Pure; not
// thread-safe.
class CircuitBreaker {
 public:
  enum class State { kClosed, kHalfOpen, kOpen };

  State state() const { return state_; }
  // When it becomes half-open; kNever unless it is open.
  MonotonicTime reopens() const {
    return state_ == State::kOpen ? until_ : kNever;
  }
  const std::string& reason() const { return reason_; }

  // Time has passed. True when the state changed.
  bool Advance(MonotonicTime now);
  // An attempt did here what it had to. True when that closed the breaker.
  bool Success(MonotonicTime now);
  // The rest return true when they opened the breaker.
  // An attempt failed through this worker's fault.
  bool Failure(const BreakerLimits& limits, std::string_view why,
               MonotonicTime now, Jitter* jitter);
  bool SessionLost(const BreakerLimits& limits, std::string_view why,
                   MonotonicTime now, Jitter* jitter);
  // Opens it, whatever was counted; nothing if it is open.
  bool Trip(const BreakerLimits& limits, std::string_view why,
            MonotonicTime now, Jitter* jitter);

 private:
  State state_ = State::kClosed;
  int failures_ = 0;
  double losses_ = 0;  // as of last_loss_
  MonotonicTime last_loss_;
  MonotonicTime until_;
  Duration pause_{0};  // the last one
  std::string reason_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_CIRCUIT_BREAKER_H_
