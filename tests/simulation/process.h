#ifndef BATON_TESTS_SIMULATION_PROCESS_H_
#define BATON_TESTS_SIMULATION_PROCESS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/base/monotonic_time.h"
#include "tests/simulation/failpoint_schedule.h"
#include "tests/simulation/monitor.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

class SimNetwork;

// What every process of a cluster shares. Pointers outlive the processes.
struct Environment {
  EventQueue* events = nullptr;
  SimNetwork* network = nullptr;
  Monitor* monitor = nullptr;
  Partitions* partitions = nullptr;
  FailpointSchedule* failpoints = nullptr;
};

// One life of a process: a name, a clock of its own, and tasks that wait while
// it is frozen and are forgotten when it dies.
class Process : public FailpointSchedule::Victim {
 public:
  // `on_death` is called once, later, when the process dies by itself.
  Process(Environment environment, Random random, std::string name,
          std::function<void()> on_death);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  // Its monotonic clock.
  MonotonicTime Now() const { return environment_.events->now() + skew_; }
  bool frozen() const { return environment_.events->now() < frozen_until_; }

  // As SIGSTOP and SIGCONT do: nothing of the process runs until then.
  void FreezeUntil(MonotonicTime when);
  // The clock leaps ahead.
  void JumpClock(Duration by);
  // The machine sleeps, and the monotonic clock with it.
  void Suspend(Duration time);
  // Ends in the middle of its own code: nothing it does from here on counts.
  void Die() override;
  bool dead() const override { return dead_; }

 protected:
  // Tasks in order, each after a short delay.
  class Thread {
   public:
    Thread(Process* process, Duration max_delay)
        : process_(process), max_delay_(max_delay) {}
    void Post(EventQueue::Task task);

   private:
    Process* process_;
    Duration max_delay_;
    std::deque<EventQueue::Task> tasks_;
  };

  // An alarm clock for a pure core: rings once at the last time it was set to,
  // by the process's clock.
  class Alarm {
   public:
    Alarm(Process* process, std::function<void()> ring)
        : process_(process), ring_(std::move(ring)) {}
    void Set(MonotonicTime when);
    // After a jump of the clock.
    void Reconsider();

   private:
    void Schedule(MonotonicTime when);

    Process* process_;
    std::function<void()> ring_;
    MonotonicTime due_ = kNever;
  };

  // Runs `task` unless the process has died by then.
  void Later(Duration delay, EventQueue::Task task);
  // Of `count` actions that a core wants, how many are carried out: all but
  // for a process that died in the core or on the way.
  size_t Surviving(size_t count);
  virtual void OnClockJump() = 0;
  virtual void OnDeath() {}
  void Violation(std::string_view what) const;

  Environment environment_;
  Random random_;

 private:
  void RunUnlessFrozen(EventQueue::Task task);

  const std::string name_;
  const std::function<void()> on_death_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Duration skew_{};
  MonotonicTime frozen_until_{};
  bool dead_ = false;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_PROCESS_H_
