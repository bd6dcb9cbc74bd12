#include "common/base/event_loop.h"

#include <pthread.h>

namespace baton {

EventLoop::EventLoop(std::string name)
    : name_(std::move(name)), thread_([this] { Run(); }) {}

EventLoop::~EventLoop() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void EventLoop::Post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

EventLoop::TimerId EventLoop::PostAt(MonotonicTime when, Task task) {
  TimerId id;
  {
    std::lock_guard lock(mutex_);
    id = next_timer_++;
    if (stopping_) return id;
    timers_.emplace(std::pair(when, id), std::move(task));
    timer_times_.emplace(id, when);
  }
  wake_.notify_one();
  return id;
}

void EventLoop::CancelTimer(TimerId id) {
  Task dropped;
  std::lock_guard lock(mutex_);
  auto it = timer_times_.find(id);
  if (it == timer_times_.end()) return;
  auto timer = timers_.find(std::pair(it->second, id));
  dropped = std::move(timer->second);
  timers_.erase(timer);
  timer_times_.erase(it);
}

bool EventLoop::OnLoopThread() const {
  return std::this_thread::get_id() == thread_.get_id();
}

void EventLoop::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (!OnLoopThread() && thread_.joinable()) thread_.join();
}

void EventLoop::Run() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  std::vector<Task> batch;
  while (true) {
    const MonotonicTime now = MonotonicNow();
    while (!stopping_ && !timers_.empty() &&
           timers_.begin()->first.first <= now) {
      auto node = timers_.extract(timers_.begin());
      timer_times_.erase(node.key().second);
      tasks_.push_back(std::move(node.mapped()));
    }
    if (!tasks_.empty()) {
      batch.swap(tasks_);
      lock.unlock();
      for (Task& task : batch) {
        task();
        task = nullptr;
      }
      batch.clear();
      lock.lock();
      continue;
    }
    if (stopping_) break;
    if (timers_.empty()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, timers_.begin()->first.first);
    }
  }
  timers_.clear();
  timer_times_.clear();
}

}  // namespace baton
