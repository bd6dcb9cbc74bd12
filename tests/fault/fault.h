#ifndef BATON_TESTS_FAULT_FAULT_H_
#define BATON_TESTS_FAULT_FAULT_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/support/process.h"

namespace baton::testing {

// Something that goes wrong for one victim, and the proof that it did.
class Fault {
 public:
  virtual ~Fault() = default;

  virtual void Inject() = 0;
  // OK when a trace outside of the code under test shows that the victim was
  // hit. Asked after Inject and before Heal.
  virtual absl::Status TookEffect() = 0;
  virtual absl::Status Heal() { return absl::OkStatus(); }
  // The victim when the fault ends it, else null.
  virtual Process* killed() const { return nullptr; }
};

// A process that has nothing to do with the cluster: where a fault goes when
// it is mis-aimed.
class Bystander {
 public:
  Bystander();
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// SIGKILL to `target`, which is the victim's pid unless the fault is
// mis-aimed. `restart` starts the victim again.
class KillFault : public Fault {
 public:
  KillFault(Process* victim, pid_t target,
            std::function<absl::Status()> restart);
  void Inject() override;
  absl::Status TookEffect() override;
  absl::Status Heal() override;
  Process* killed() const override { return victim_; }

 private:
  Process* const victim_;
  const pid_t target_;
  const std::function<absl::Status()> restart_;
  bool dead_ = false;
};

// SIGSTOP to `target`, SIGCONT to heal. The victim was hit when the kernel has
// called it stopped from the start to now and it used no CPU time.
class StopFault : public Fault {
 public:
  StopFault(Process* victim, pid_t target);
  void Inject() override;
  absl::Status TookEffect() override;
  absl::Status Heal() override;

 private:
  Process* const victim_;
  const pid_t target_;
  uint64_t ticks_ = 0;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_FAULT_FAULT_H_
