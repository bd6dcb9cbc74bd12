#ifndef BATON_ROUTER_REQUEST_FLOW_PROGRESS_WATCH_H_
#define BATON_ROUTER_REQUEST_FLOW_PROGRESS_WATCH_H_

#include "common/base/monotonic_time.h"

namespace baton::router {

// Tells whether accepted work moves at all: a cluster whose sessions are up and
// whose steps stand still while requests wait is no place for more of them.
// Pure; not thread-safe.
class ProgressWatch {
 public:
  explicit ProgressWatch(Duration timeout) : timeout_(timeout) {}

  // A worker made a step or said something new about a request.
  void Moved(MonotonicTime now) {
    last_ = now;
    stalled_ = false;
  }
  // Whether there is work; the clock starts when there was none.
  void SetBusy(bool busy, MonotonicTime now) {
    if (busy && !busy_) last_ = now;
    if (!busy) stalled_ = false;
    busy_ = busy;
  }
  // Time has passed.
  void Check(MonotonicTime now) {
    if (now >= due()) stalled_ = true;
  }

  // There was work for the whole timeout, and nothing moved.
  bool stalled() const { return stalled_; }
  // When Check is due; kNever while nothing waits for it.
  MonotonicTime due() const {
    return busy_ && !stalled_ ? last_ + timeout_ : kNever;
  }

 private:
  const Duration timeout_;
  MonotonicTime last_;
  bool busy_ = false;
  bool stalled_ = false;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_PROGRESS_WATCH_H_
