#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

namespace baton::simulation {

Process::Process(Environment environment, Random random, std::string name,
                 std::function<void()> on_death)
    : environment_(environment),
      random_(random),
      name_(std::move(name)),
      on_death_(std::move(on_death)) {}

Process::~Process() = default;

void Process::FreezeUntil(MonotonicTime when) {
  frozen_until_ = std::max(frozen_until_, when);
}

void Process::JumpClock(Duration by) {
  skew_ += by;
  OnClockJump();
}

void Process::Suspend(Duration time) {
  FreezeUntil(environment_.events->now() + time);
  skew_ -= time;
  OnClockJump();
}

void Process::Die() {
  if (dead_) return;
  dead_ = true;
  alive_ = nullptr;
  OnDeath();
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(name_, "dies by itself");
  }
  environment_.events->After(Duration(0), on_death_);
}

void Process::Thread::Post(EventQueue::Task task) {
  tasks_.push_back(std::move(task));
  process_->Later(process_->random_.Between(Duration(1), max_delay_), [this] {
    const EventQueue::Task next = std::move(tasks_.front());
    tasks_.pop_front();
    next();
  });
}

void Process::Alarm::Set(MonotonicTime when) {
  if (when >= due_) return;
  due_ = when;
  Schedule(when);
}

void Process::Alarm::Reconsider() {
  if (due_ != kNever) Schedule(due_);
}

void Process::Alarm::Schedule(MonotonicTime when) {
  const MonotonicTime now = process_->Now();
  const Duration delay = when <= now ? Duration(0) : when - now;
  process_->environment_.events->After(
      delay, [this, when, alive = std::weak_ptr<bool>(process_->alive_)] {
        if (alive.expired() || due_ != when) return;
        if (process_->Now() < when) return Schedule(when);
        due_ = kNever;
        ring_();
      });
}

void Process::Later(Duration delay, EventQueue::Task task) {
  environment_.events->After(delay, [this, alive = std::weak_ptr<bool>(alive_),
                                     task = std::move(task)] {
    if (!alive.expired()) RunUnlessFrozen(task);
  });
}

void Process::RunUnlessFrozen(EventQueue::Task task) {
  const MonotonicTime now = environment_.events->now();
  if (now >= frozen_until_) {
    FailpointSchedule::Scope scope(environment_.failpoints, this);
    return task();
  }
  Later(frozen_until_ - now, std::move(task));
}

size_t Process::Surviving(size_t count) {
  if (!dead_) return count;
  return random_.Chance(0.5) ? 0 : random_.Below(count + 1);
}

void Process::Violation(std::string_view what) const {
  environment_.monitor->Violation(name_, what);
}

}  // namespace baton::simulation
