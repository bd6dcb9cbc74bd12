#ifndef BATON_COMMON_WORKER_SCHEDULER_DRIVER_H_
#define BATON_COMMON_WORKER_SCHEDULER_DRIVER_H_

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/event_loop.h"
#include "common/base/monotonic_time.h"
#include "common/worker/scheduler_events.h"

namespace baton {

// Runs a pure scheduler on an event loop of its own: hands it events with the
// time, carries out its actions in order, and ticks it when it asks for that.
// `Scheduler` has Event, Action, Handle() and NextDeadline().
template <class Scheduler>
class SchedulerDriver {
 public:
  using Event = typename Scheduler::Event;
  using Action = typename Scheduler::Action;

  // `execute` runs on the loop and may Feed answers. `after` runs on the loop
  // when all events so far were handled.
  SchedulerDriver(std::string thread_name, Scheduler scheduler,
                  std::function<void(Action)> execute,
                  std::function<void(const Scheduler&)> after)
      : scheduler_(std::move(scheduler)),
        execute_(std::move(execute)),
        after_(std::move(after)),
        loop_(std::move(thread_name)) {}

  // Any thread.
  void Post(Event event) {
    loop_.Post(
        [this, event = std::move(event)]() mutable { Feed(std::move(event)); });
  }

  // On the loop: handled at once, or right after the event being handled.
  void Feed(Event event) {
    events_.push_back(std::move(event));
    if (handling_) return;
    handling_ = true;
    while (!events_.empty()) {
      Event next = std::move(events_.front());
      events_.pop_front();
      for (Action& action :
           scheduler_.Handle(std::move(next), MonotonicNow())) {
        execute_(std::move(action));
      }
    }
    handling_ = false;
    after_(scheduler_);
    ArmTimer();
  }

  // On the loop.
  const Scheduler& scheduler() const { return scheduler_; }

  // Any thread but the loop's: runs `read(scheduler)` on the loop and waits.
  // Must not be called after Stop.
  template <class Read>
  auto Ask(Read read) {
    std::promise<decltype(read(scheduler_))> answer;
    auto future = answer.get_future();
    loop_.Post([&] { answer.set_value(read(scheduler_)); });
    return future.get();
  }

  // The same, or nothing when the loop does not come to it within `timeout`;
  // `read` may run later even so. A pause of the whole process does not count.
  template <class Read>
  auto AskFor(Read read, Duration timeout) {
    using Answer = decltype(read(scheduler_));
    std::optional<Answer> answer;
    if (unanswered_->fetch_add(1) >= kMostUnanswered) {
      --*unanswered_;
      return answer;
    }
    auto promise = std::make_shared<std::promise<Answer>>();
    auto future = promise->get_future();
    loop_.Post([this, promise, read, unanswered = unanswered_] {
      --*unanswered;
      promise->set_value(read(scheduler_));
    });
    for (int i = 0; i < kLooks; ++i) {
      if (future.wait_for(timeout / kLooks) != std::future_status::ready) {
        continue;
      }
      answer = future.get();
      break;
    }
    return answer;
  }

  // Handles what was posted before, then nothing more.
  void Stop() { loop_.Stop(); }

 private:
  static constexpr int kLooks = 5;
  // Questions that wait for a loop that does not move.
  static constexpr int kMostUnanswered = 64;

  void ArmTimer() {
    const MonotonicTime next = scheduler_.NextDeadline();
    if (next >= armed_for_) return;
    if (timer_ != 0) loop_.CancelTimer(timer_);
    armed_for_ = next;
    timer_ = loop_.PostAt(next, [this] {
      timer_ = 0;
      armed_for_ = kNever;
      Feed(Tick{});
    });
  }

  Scheduler scheduler_;
  const std::function<void(Action)> execute_;
  const std::function<void(const Scheduler&)> after_;
  std::deque<Event> events_;
  bool handling_ = false;
  EventLoop::TimerId timer_ = 0;
  MonotonicTime armed_for_ = kNever;
  const std::shared_ptr<std::atomic<int>> unanswered_ =
      std::make_shared<std::atomic<int>>(0);
  EventLoop loop_;  // last: its thread uses all of the above
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SCHEDULER_DRIVER_H_
