#include "tests/fault/fault.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/proc_state.h"

namespace baton::testing {
namespace {

// How long the kernel may take to stop or end a process.
constexpr auto kSettle = std::chrono::seconds(5);

bool Until(const std::function<bool()>& condition) {
  const MonotonicTime deadline = MonotonicNow() + kSettle;
  while (!condition()) {
    if (MonotonicNow() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace

Bystander::Bystander() : pid_(fork()) {
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) pause();
}

Bystander::~Bystander() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

KillFault::KillFault(Process* victim, pid_t target,
                     std::function<absl::Status()> restart)
    : victim_(victim), target_(target), restart_(std::move(restart)) {}

void KillFault::Inject() { kill(target_, SIGKILL); }

absl::Status KillFault::TookEffect() {
  if (dead_) return absl::OkStatus();
  const auto status = victim_->WaitExit(std::chrono::seconds(2));
  if (!status.ok()) return status.status();
  if (!WIFSIGNALED(*status) || WTERMSIG(*status) != SIGKILL) {
    return absl::FailedPreconditionError(absl::StrCat(
        victim_->name(), " ended by itself: wait status ", *status));
  }
  dead_ = true;
  return absl::OkStatus();
}

absl::Status KillFault::Heal() { return dead_ ? restart_() : absl::OkStatus(); }

StopFault::StopFault(Process* victim, pid_t target)
    : victim_(victim), target_(target) {}

void StopFault::Inject() {
  kill(target_, SIGSTOP);
  Until([this] { return AllThreadsStopped(target_); });
  ticks_ = CpuTicks(victim_->pid());
}

absl::Status StopFault::TookEffect() {
  const char state = ProcessState(victim_->pid());
  const uint64_t ticks = CpuTicks(victim_->pid());
  if (state == 'T' && ticks == ticks_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(victim_->name(), " was not stopped: state ",
                   std::string(1, state), ", ", ticks - ticks_, " ticks"));
}

absl::Status StopFault::Heal() {
  kill(target_, SIGCONT);
  return absl::OkStatus();
}

}  // namespace baton::testing
