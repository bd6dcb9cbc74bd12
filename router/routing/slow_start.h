#ifndef BATON_ROUTER_ROUTING_SLOW_START_H_
#define BATON_ROUTER_ROUTING_SLOW_START_H_

#include <cstdint>

#include "common/base/monotonic_time.h"

namespace baton::router {

// Limits the attempts at a worker that has just joined or come back: one, and
// one more for each that gets along, until some time has passed. A worker that
// is empty attracts all work, and may not be able to do any. Pure; not
// thread-safe.
class SlowStart {
 public:
  void Begin(MonotonicTime now, Duration time) {
    end_ = now + time;
    allowed_ = 1;
  }
  void Success() { ++allowed_; }
  bool Allows(uint32_t attempts, MonotonicTime now) const {
    return now >= end_ || attempts < allowed_;
  }

 private:
  MonotonicTime end_ = MonotonicTime::min();
  uint32_t allowed_ = 1;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_SLOW_START_H_
