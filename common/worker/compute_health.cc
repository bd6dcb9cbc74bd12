#include "common/worker/compute_health.h"

#include <algorithm>

#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxReasonBytes = 160;

}  // namespace

void ComputeHealth::StepStarted(MonotonicTime now) {
  in_step_ = true;
  step_started_ = now;
}

void ComputeHealth::StepEnded() { in_step_ = stalled_ = false; }

void ComputeHealth::Judge(int drawn, int broken, const absl::Status& why,
                          MonotonicTime now) {
  if (untrusted()) return;
  broken_ = drawn > 0 ? 0 : broken_ + broken;
  if (!untrusted()) return;
  why_ = std::string(why.message().substr(0, kMaxReasonBytes));
  PostponeProbe(now);
}

void ComputeHealth::Update(MonotonicTime now) {
  stalled_ = in_step_ && now - step_started_ >= options_.step_timeout;
}

bool ComputeHealth::ProbeDue(MonotonicTime now) const {
  return untrusted() && !in_step_ && now >= next_probe_;
}

void ComputeHealth::ProbeEnded(const absl::Status& status, MonotonicTime now) {
  if (status.ok()) {
    broken_ = 0;
    why_.clear();
    probe_interval_ = options_.probe_interval;
    return;
  }
  probe_interval_ = std::min(2 * probe_interval_, options_.max_probe_interval);
  PostponeProbe(now);
}

void ComputeHealth::PostponeProbe(MonotonicTime now) {
  next_probe_ = now + probe_interval_;
}

std::string ComputeHealth::WhyUnhealthy() const {
  if (stalled_) {
    return StrCat("a step has been running for more than ",
                  Seconds(options_.step_timeout), " s");
  }
  if (untrusted()) {
    return StrCat(broken_, " attempts in a row could not be computed: ", why_);
  }
  return "";
}

MonotonicTime ComputeHealth::NextDeadline() const {
  if (in_step_) {
    return stalled_ ? kNever : step_started_ + options_.step_timeout;
  }
  return untrusted() ? next_probe_ : kNever;
}

}  // namespace baton
