#ifndef BATON_ROUTER_ADMISSION_RETRY_BUDGET_H_
#define BATON_ROUTER_ADMISSION_RETRY_BUDGET_H_

#include <cstdint>

#include "common/base/monotonic_time.h"

namespace baton::router {

struct RetryLimits {
  double share = 0.1;      // replays per accepted request ...
  double per_second = 10;  // ... and besides, however few requests there are
  double burst = 200;      // saved up at most; a whole worker may die at once
};

// A token bucket that bounds replays of all requests together, so that a
// cluster in trouble is not given a multiple of its work. Full at the start.
// Pure; not thread-safe.
class RetryBudget {
 public:
  RetryBudget(RetryLimits limits, MonotonicTime now);

  void Accepted(MonotonicTime now);
  // False, and nothing is taken, when the bucket does not hold as many.
  bool Take(uint64_t replays, MonotonicTime now);
  // As of the last call.
  double left() const { return left_; }

 private:
  void Refill(double amount, MonotonicTime now);

  const RetryLimits limits_;
  double left_;
  MonotonicTime last_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_RETRY_BUDGET_H_
