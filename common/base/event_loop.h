#ifndef BATON_COMMON_BASE_EVENT_LOOP_H_
#define BATON_COMMON_BASE_EVENT_LOOP_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton {

// A thread that runs tasks one at a time, in the order they were posted, and
// timers when they are due. Every process drives its pure cores from one loop;
// callbacks of gRPC, the transport and the compute thread only post.
//
// Thread-safe, except that the destructor must not run on the loop's thread.
class EventLoop {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  // Starts the thread; `name` shows in debuggers (at most 15 characters).
  explicit EventLoop(std::string name);
  // Stop(), then joins.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs `task` on the loop after those posted before it. After Stop() the
  // task is destroyed without running.
  void Post(Task task);

  // Runs `task` once at or after `when`. The result is never 0.
  TimerId PostAt(MonotonicTime when, Task task);
  // A timer that already ran or never existed is ignored.
  void CancelTimer(TimerId id);

  bool OnLoopThread() const;

  // Runs what was posted before the call, drops timers, ends the thread.
  // Idempotent. Returns at once when called on the loop itself.
  void Stop();

 private:
  void Run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_;                                        // mutex_
  std::map<std::pair<MonotonicTime, TimerId>, Task> timers_;       // mutex_
  std::map<TimerId, MonotonicTime> timer_times_;                   // mutex_
  TimerId next_timer_ = 1;                                         // mutex_
  bool stopping_ = false;                                          // mutex_
  std::thread thread_;
};

}  // namespace baton

#endif  // BATON_COMMON_BASE_EVENT_LOOP_H_
