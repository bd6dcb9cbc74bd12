#ifndef BATON_ROUTER_MEMBERSHIP_STREAM_GROUP_H_
#define BATON_ROUTER_MEMBERSHIP_STREAM_GROUP_H_

#include <condition_variable>
#include <mutex>

namespace baton::router {

// Counts calls that gRPC still runs. Thread-safe.
class StreamGroup {
 public:
  void Enter() {
    std::lock_guard lock(mutex_);
    ++running_;
  }
  void Leave() {
    std::lock_guard lock(mutex_);
    if (--running_ == 0) empty_.notify_all();
  }
  void WaitUntilEmpty() {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  int running_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_STREAM_GROUP_H_
