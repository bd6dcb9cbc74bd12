#ifndef BATON_COMMON_WORKER_ATTEMPT_SCHEDULER_H_
#define BATON_COMMON_WORKER_ATTEMPT_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/attempt_table.h"
#include "common/worker/chunk_planner.h"
#include "common/worker/compute_health.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/session_accounts.h"
#include "common/worker/step_budget.h"
#include "common/worker/step_plan.h"
#include "common/worker/worker_load.h"
#include "proto/cluster.pb.h"

namespace baton {

// What the schedulers of both kinds of worker do alike: sessions and their
// credits, attempts and their deadlines, the step in flight, drain, failures
// and load reports. A scheduler derives from it, handles its own events and
// decides which steps run.
//
// `Kind` says what is different: Job (an AttemptJob), Command and Message (of
// the session's stream), Action, Counters (WorkerCounters and more) and kName,
// "prefill worker".
template <class WorkerKind>
class AttemptScheduler {
 public:
  using Kind = WorkerKind;
  using Job = typename Kind::Job;
  using Command = typename Kind::Command;
  using Message = typename Kind::Message;
  using Action = typename Kind::Action;
  using Counters = typename Kind::Counters;

  // When a Tick is due if nothing else happens.
  MonotonicTime NextDeadline() const {
    return std::min({accounts_.NextDeadline(), jobs_.NextDeadline(),
                     health_.NextDeadline()});
  }

  const BlockPool& pool() const { return pool_; }
  bool idle() const { return jobs_.empty() && !step_in_flight_; }
  bool draining() const { return draining_; }
  bool stepping() const { return step_in_flight_; }
  // Unhealthy: new work is refused.
  const ComputeHealth& health() const { return health_; }
  bool healthy() const { return health_.WhyUnhealthy().empty(); }
  const Counters& counters() const { return counters_; }
  // Of a step, as the steps so far show; none: not predicted.
  const std::optional<CostModel>& costs() const { return costs_; }

  v1::WorkerLoad Load() const {
    v1::WorkerLoad load = LoadOf(pool_.ledger());
    load.set_unhealthy(health_.WhyUnhealthy());
    load.set_draining(draining_ || !load.unhealthy().empty());
    load.set_steps(counters_.steps);
    if (costs_.has_value()) SetCosts(*costs_, &load);
    CompleteLoad(&load);
    return load;
  }

 protected:
  AttemptScheduler(WorkerEpoch epoch, uint32_t blocks, StepBudget budget,
                   ComputeHealth::Options health,
                   std::optional<CostModel> costs)
      : pool_(epoch, blocks),
        accounts_({.step_token_budget = budget.max_tokens}),
        health_(health),
        budget_(budget),
        costs_(std::move(costs)) {}
  AttemptScheduler(const AttemptScheduler&) = default;
  AttemptScheduler(AttemptScheduler&&) = default;
  ~AttemptScheduler() = default;

  // Ends an open attempt: tells the router unless `failure` is OK; blocks
  // follow when nothing touches them any more. `job` may be gone afterwards.
  virtual void Close(Job& job, const absl::Status& failure, bool retryable,
                     v1::FailureCause cause) = 0;
  // Nothing failed.
  void Close(Job& job) {
    Close(job, absl::OkStatus(), false, v1::FAILURE_CAUSE_UNSPECIFIED);
  }
  // Lets blocks go that are held only as long as nobody wants them, if fewer
  // than so many are free.
  virtual void MakeRoom(uint32_t /*free*/) {}
  // Adds what the ledger does not tell.
  virtual void CompleteLoad(v1::WorkerLoad* load) const = 0;

  void On(SessionOpened event, MonotonicTime) { accounts_.Open(event.session); }
  void On(SessionLost event, MonotonicTime) {
    accounts_.Close(event.session);
    if (BATON_MUTANT("session_loss_ignored")) return;
    for (JobId job : jobs_.OpenOf(event.session)) Close(jobs_.at(job));
    BATON_FAILPOINT("worker.session_lost");
  }
  void On(Tick, MonotonicTime) {}
  void On(DrainStarted, MonotonicTime) { draining_ = true; }
  void On(ShutDown, MonotonicTime) {
    draining_ = true;
    for (JobId job : jobs_.Open()) {
      Close(jobs_.at(job),
            absl::UnavailableError(StrCat(Kind::kName, " shuts down")), true,
            v1::FAILURE_CAUSE_LOAD);
    }
  }

  void ExpireDeadlines(MonotonicTime now) {
    while (Job* job = jobs_.Expired(now)) {
      Close(*job,
            absl::DeadlineExceededError(
                StrCat("deadline passed on the ", Kind::kName)),
            false, v1::FAILURE_CAUSE_REQUEST);
      BATON_FAILPOINT("worker.deadline");
    }
  }

  // Notices a stalled step; runs a probe as the next step if one is due.
  void WatchCompute(MonotonicTime now) {
    health_.Update(now);
    if (draining_ || step_in_flight_ || !health_.ProbeDue(now)) return;
    MakeRoom(1);
    absl::StatusOr<std::vector<BlockRef>> block =
        pool_.Acquire(1, BlockUse::kRunning);
    if (!block.ok()) {
      health_.PostponeProbe(now);
      return;
    }
    probe_ = *std::move(block);
    RunNext(ProbePlan(probe_), now);
  }

  // Tokens of a new prompt that may join a step with `others`.
  uint32_t PromptTokensBeside(const StepShape& others) const {
    return costs_.has_value() ? budget_.PromptTokens(*costs_, others, 0)
                              : budget_.max_tokens;
  }
  // The next chunks of waiting prompts, as many as may join what is planned.
  std::vector<ChunkPlanner::Chunk> NextChunks(ChunkPlanner* chunks,
                                              const StepPlan& plan) const {
    if (chunks->empty()) return {};
    return chunks->Next(costs_.has_value()
                            ? budget_.PromptTokens(*costs_, ShapeOf(plan),
                                                   chunks->next_position())
                            : budget_.max_tokens);
  }

  // Runs a plan as the next step. Requires that none is in flight.
  void RunNext(StepPlan plan, MonotonicTime now) {
    step_in_flight_ = true;
    if (costs_.has_value()) step_shape_ = ShapeOf(plan);
    health_.StepStarted(now);
    plan.number = ++counters_.steps;
    actions_.push_back(RunStep{std::move(plan)});
  }
  // True if the step in flight is this one, has ended and was no probe.
  bool EndStep(const StepDone& done, MonotonicTime now) {
    if (!step_in_flight_ || done.number != counters_.steps) {
      ++counters_.stale_messages;
      return false;
    }
    step_in_flight_ = false;
    health_.StepEnded();
    if (costs_.has_value()) {
      costs_->Observe(step_shape_, done.result.elapsed);
    }
    if (probe_.empty()) return true;
    BATON_CHECK(pool_.Release(probe_, BlockUse::kRunning).ok());
    probe_.clear();
    health_.ProbeEnded(done.result.spans.front().status, now);
    return false;
  }

  // Nothing is sent on sessions that are lost.
  void Send(SessionId session, Message message) {
    if (!accounts_.Has(session)) return;
    actions_.push_back(SendEvent<Message>{session, std::move(message)});
  }
  void SendFailure(SessionId session, AttemptId attempt,
                   const absl::Status& failure, bool retryable,
                   v1::FailureCause cause) {
    ++counters_.failed;
    Message message;
    v1::AttemptFailure& failed = *message.mutable_failed();
    failed.set_attempt_id(attempt.value());
    failed.set_code(static_cast<int>(failure.code()));
    failed.set_message(std::string(failure.message()));
    failed.set_retryable(retryable);
    failed.set_cause(cause);
    Send(session, std::move(message));
  }
  void ReportLoad(MonotonicTime now) {
    for (SessionAccounts::Report& report : accounts_.Due(Load(), now)) {
      Message message;
      *message.mutable_load() = std::move(report.load);
      Send(report.session, std::move(message));
    }
  }

  BlockPool pool_;
  AttemptTable<Job> jobs_;
  SessionAccounts accounts_;
  bool step_in_flight_ = false;
  bool draining_ = false;
  ComputeHealth health_;
  std::vector<BlockRef> probe_;  // its block, while a probe is in flight
  const StepBudget budget_;
  std::optional<CostModel> costs_;
  StepShape step_shape_;  // of the step in flight
  Counters counters_;
  std::vector<Action> actions_;  // of the event being handled
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_ATTEMPT_SCHEDULER_H_
