#ifndef BATON_COMMON_BASE_SHUTDOWN_REQUESTS_H_
#define BATON_COMMON_BASE_SHUTDOWN_REQUESTS_H_

#include <condition_variable>
#include <mutex>

#include "common/base/monotonic_time.h"

namespace baton {

// Exit status of a process that drained, but not clean: blocks or requests
// were left. 1 and 2 are for processes that could not start (process_start.h),
// 3 for a model file that changed under a process.
inline constexpr int kExitNotClean = 4;

// Counts the requests to end this process: the first asks for a drain, the
// second for an end at once. Thread-safe.
class ShutdownRequests {
 public:
  // Until StartServing one ends the process with 128 + signal: nobody depends
  // on it yet.
  void Add(int signal);
  void StartServing();

  int count() const;
  // Until there are more than `count`; false when `deadline` passed first.
  bool WaitAbove(int count, MonotonicTime deadline);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;         // mutex_
  bool serving_ = false;  // mutex_
};

}  // namespace baton

#endif  // BATON_COMMON_BASE_SHUTDOWN_REQUESTS_H_
