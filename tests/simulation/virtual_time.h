#ifndef BATON_TESTS_SIMULATION_VIRTUAL_TIME_H_
#define BATON_TESTS_SIMULATION_VIRTUAL_TIME_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::simulation {

// xoshiro256**: the same numbers on every host, unlike std distributions.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Next();
  uint64_t Below(uint64_t bound);                 // [0, bound); bound >= 1
  uint64_t Between(uint64_t low, uint64_t high);  // both inclusive
  double Unit();                                  // [0, 1)
  bool Chance(double probability);
  Duration Between(Duration low, Duration high);
  // A generator of its own, so that one part's draws do not shift another's.
  Random Fork();

 private:
  uint64_t state_[4];
};

// Virtual time and everything that will happen. Tasks that are due at the same
// instant run in an order that the seed decides. Single-threaded.
class EventQueue {
 public:
  using Task = std::function<void()>;

  explicit EventQueue(uint64_t seed);

  MonotonicTime now() const { return now_; }
  // At `when`, or now if that has passed.
  void At(MonotonicTime when, Task task);
  void After(Duration delay, Task task) { At(now_ + delay, std::move(task)); }
  // Runs the earliest task; false if there is none.
  bool RunNext();
  // When the earliest task is due; kNever if there is none.
  MonotonicTime next() const;
  uint64_t tasks_run() const { return tasks_run_; }

 private:
  struct Entry {
    MonotonicTime when;
    uint64_t tie;
    Task task;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.when != b.when ? a.when > b.when : a.tie > b.tie;
    }
  };

  Random random_;
  MonotonicTime now_;
  uint64_t tasks_run_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_VIRTUAL_TIME_H_
