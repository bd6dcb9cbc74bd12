#include "router/admission/retry_budget.h"

#include <algorithm>

namespace baton::router {

RetryBudget::RetryBudget(RetryLimits limits, MonotonicTime now)
    : limits_(limits), left_(limits.burst), last_(now) {}

void RetryBudget::Accepted(MonotonicTime now) { Refill(limits_.share, now); }

bool RetryBudget::Take(uint64_t replays, MonotonicTime now) {
  Refill(0, now);
  const auto wanted = static_cast<double>(replays);
  if (left_ < wanted) return false;
  left_ -= wanted;
  return true;
}

void RetryBudget::Refill(double amount, MonotonicTime now) {
  amount += limits_.per_second * Seconds(now - last_);
  left_ = std::min(limits_.burst, left_ + amount);
  last_ = now;
}

}  // namespace baton::router
