#ifndef BATON_TESTS_SIMULATION_FAILPOINT_SCHEDULE_H_
#define BATON_TESTS_SIMULATION_FAILPOINT_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/failpoints.h"
#include "tests/simulation/monitor.h"

namespace baton::simulation {

// One use of a failpoint in a run.
struct FailpointHit {
  uint64_t point = 0;  // modulo their number, in order of name
  uint32_t after = 1;  // reached so often in the cluster
  bool fails = false;  // the operation, if it can; else the process dies
};

// Observes the failpoints of the calling thread for as long as it lives, and
// lets the process that reaches a planned one die there.
class FailpointSchedule : public FailpointObserver {
 public:
  class Victim {
   public:
    virtual ~Victim() = default;
    virtual void Die() = 0;
    virtual bool dead() const = 0;
  };
  // Whose code runs.
  class Scope {
   public:
    Scope(FailpointSchedule* schedule, Victim* victim)
        : schedule_(schedule), outer_(schedule->running_) {
      schedule_->running_ = victim;
    }
    ~Scope() { schedule_->running_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FailpointSchedule* schedule_;
    Victim* outer_;
  };

  // `monitor` outlives the schedule.
  FailpointSchedule(const std::vector<FailpointHit>& hits, Monitor* monitor);
  ~FailpointSchedule() override;

  bool Reached(const Failpoint& point) override;
  void Heal() { pending_.clear(); }

  // All failpoints of the cores that are linked, by name.
  static const std::vector<const Failpoint*>& Points();

 private:
  struct Pending {
    const Failpoint* point;
    uint32_t left;
    bool fails;
  };
  Monitor* monitor_;
  Victim* running_ = nullptr;
  std::vector<Pending> pending_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_FAILPOINT_SCHEDULE_H_
