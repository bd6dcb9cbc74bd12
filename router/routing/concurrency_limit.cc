#include "router/routing/concurrency_limit.h"

#include <algorithm>

namespace baton::router {

void ConcurrencyLimit::InTime() {
  if (limit_ == kNone || 2 * ++in_time_ < limit_) return;
  in_time_ = 0;
  ++limit_;
}

void ConcurrencyLimit::Late(uint32_t answers, MonotonicTime started,
                            MonotonicTime now) {
  if (started < reduced_) return;
  limit_ = std::max(kLeast, std::min(limit_, answers) / 2);
  in_time_ = 0;
  reduced_ = now;
}

}  // namespace baton::router
