#ifndef BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_
#define BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/monotonic_time.h"

namespace baton::router {

// How fast a queue drains: prompt tokens served per second of those seconds in
// which work waited, over the last windows of such time. Says nothing before
// two windows are full. Pure; not thread-safe.
class DrainEstimate {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(2);
  static constexpr size_t kWindows = 8;
  // Older windows say nothing about the cluster of today.
  static constexpr Duration kMaxAge = std::chrono::seconds(60);

  // Whether work waits from now on.
  void Waiting(bool any, MonotonicTime now);
  void Served(uint64_t tokens, MonotonicTime now);

  // Tokens per second, > 0.
  std::optional<double> Rate(MonotonicTime now);
  // The rate of the fastest window: a queue that would not drain in time even
  // so, will not.
  std::optional<double> FastestRate(MonotonicTime now);

 private:
  struct Window {
    Duration waiting{0};
    uint64_t tokens = 0;
    MonotonicTime end;
    double rate() const {
      return static_cast<double>(tokens) / Seconds(waiting);
    }
  };

  void Advance(MonotonicTime now);

  bool waiting_ = false;
  MonotonicTime last_;
  Window current_;
  std::deque<Window> windows_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_
