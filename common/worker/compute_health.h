#ifndef BATON_COMMON_WORKER_COMPUTE_HEALTH_H_
#define BATON_COMMON_WORKER_COMPUTE_HEALTH_H_

#include <string>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"

namespace baton {

// Whether the compute of a worker may be trusted with work. Pure.
//
// Numeric: after `max_broken` attempts in a row with NaN or infinity it may
// not, until a probe, a step over one fixed token, comes out finite. So bad
// hardware stays out and a few poisonous prompts cost a second.
// Stalled: while a step runs longer than `step_timeout`.
class ComputeHealth {
 public:
  struct Options {
    Duration step_timeout = std::chrono::seconds(60);
    int max_broken = 3;
    // Between probes; doubles with each bad one.
    Duration probe_interval = std::chrono::seconds(1);
    Duration max_probe_interval = std::chrono::seconds(60);
  };

  explicit ComputeHealth(Options options)
      : options_(options), probe_interval_(options.probe_interval) {}

  void StepStarted(MonotonicTime now);
  void StepEnded();
  // Of one step: attempts that drew finite tokens, and attempts that broke,
  // the last one for the reason `why`.
  void Judge(int drawn, int broken, const absl::Status& why, MonotonicTime now);
  // Time passes.
  void Update(MonotonicTime now);

  // A probe is to run as the next step; it ends, or could not run.
  bool ProbeDue(MonotonicTime now) const;
  void ProbeEnded(const absl::Status& status, MonotonicTime now);
  void PostponeProbe(MonotonicTime now);

  bool stalled() const { return stalled_; }
  // For operators and WorkerLoad; empty when healthy.
  std::string WhyUnhealthy() const;
  // When Update or a probe is due.
  MonotonicTime NextDeadline() const;

 private:
  bool untrusted() const { return broken_ >= options_.max_broken; }

  Options options_;
  bool in_step_ = false;
  MonotonicTime step_started_;
  bool stalled_ = false;
  int broken_ = 0;  // in a row
  std::string why_;
  Duration probe_interval_;
  MonotonicTime next_probe_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_COMPUTE_HEALTH_H_
