#include "common/base/shutdown_requests.h"

#include <cstdlib>

namespace baton {

void ShutdownRequests::Add(int signal) {
  std::lock_guard lock(mutex_);
  if (!serving_) std::_Exit(128 + signal);
  ++count_;
  changed_.notify_all();
}

void ShutdownRequests::StartServing() {
  std::lock_guard lock(mutex_);
  serving_ = true;
}

int ShutdownRequests::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

bool ShutdownRequests::WaitAbove(int count, MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  auto above = [&] { return count_ > count; };
  if (deadline == kNever) {
    changed_.wait(lock, above);
    return true;
  }
  return changed_.wait_until(lock, deadline, above);
}

}  // namespace baton
