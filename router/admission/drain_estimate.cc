#include "router/admission/drain_estimate.h"

#include <algorithm>
#include <utility>

namespace baton::router {

void DrainEstimate::Waiting(bool any, MonotonicTime now) {
  Advance(now);
  waiting_ = any;
}

void DrainEstimate::Served(uint64_t tokens, MonotonicTime now) {
  Advance(now);
  if (waiting_) current_.tokens += tokens;
}

std::optional<double> DrainEstimate::Rate(MonotonicTime now) {
  Advance(now);
  if (windows_.size() < 2) return std::nullopt;
  Window sum;
  for (const Window& window : windows_) {
    sum.waiting += window.waiting;
    sum.tokens += window.tokens;
  }
  return sum.tokens == 0 ? std::nullopt : std::optional(sum.rate());
}

std::optional<double> DrainEstimate::FastestRate(MonotonicTime now) {
  Advance(now);
  if (windows_.size() < 2) return std::nullopt;
  double fastest = 0;
  for (const Window& window : windows_) {
    fastest = std::max(fastest, window.rate());
  }
  return fastest == 0 ? std::nullopt : std::optional(fastest);
}

void DrainEstimate::Advance(MonotonicTime now) {
  if (waiting_) current_.waiting += now - last_;
  last_ = now;
  if (current_.waiting >= kWindow) {
    current_.end = now;
    windows_.push_back(std::exchange(current_, {}));
    if (windows_.size() > kWindows) windows_.pop_front();
  }
  while (!windows_.empty() && now - windows_.front().end > kMaxAge) {
    windows_.pop_front();
  }
}

}  // namespace baton::router
