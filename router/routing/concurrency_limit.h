#ifndef BATON_ROUTER_ROUTING_CONCURRENCY_LIMIT_H_
#define BATON_ROUTER_ROUTING_CONCURRENCY_LIMIT_H_

#include <cstdint>
#include <limits>

#include "common/base/monotonic_time.h"

namespace baton::router {

// How many answers a decode worker makes at once. A batch larger than it needs
// to be makes each answer slower and no more of them; in a storm that is the
// way in which everything comes to be late. Answers that are late although
// there seemed to be time enough at their start halve the batch, once for all
// that were started before; those in time let it grow again (additive increase,
// multiplicative decrease, as in congestion control). Without limit until the
// first is late. Pure; not thread-safe.
class ConcurrencyLimit {
 public:
  static constexpr uint32_t kLeast = 4;
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  bool Allows(uint32_t answers) const { return answers < limit_; }
  uint32_t limit() const { return limit_; }

  void InTime();
  // One of `answers` at the worker, started at `started`.
  void Late(uint32_t answers, MonotonicTime started, MonotonicTime now);

 private:
  uint32_t limit_ = kNone;
  uint32_t in_time_ = 0;  // since it grew
  MonotonicTime reduced_ = MonotonicTime::min();
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_CONCURRENCY_LIMIT_H_
