#include "decode_worker/decode_scheduler.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::decode {

DecodeScheduler::DecodeScheduler(DecodeOptions options)
    : options_(std::move(options)),
      pool_(options_.epoch, options_.blocks),
      accounts_({.step_token_budget = options_.step_token_budget}) {}

std::vector<Action> DecodeScheduler::Handle(Event event, MonotonicTime now) {
  std::visit([&](auto&& e) { On(std::move(e), now); }, std::move(event));
  ExpireDeadlines(now);
  JoinReady(now);
  StartStep(now);
  ReportLoad(now);
  return std::exchange(actions_, {});
}

MonotonicTime DecodeScheduler::NextDeadline() const {
  const MonotonicTime report = accounts_.NextDeadline();
  return deadlines_.empty() ? report
                            : std::min(report, deadlines_.begin()->first);
}

void DecodeScheduler::On(SessionOpened event, MonotonicTime) {
  accounts_.Open(event.session);
}

void DecodeScheduler::On(SessionLost event, MonotonicTime) {
  accounts_.Close(event.session);
  std::vector<JobId> lost;
  for (const auto& [key, job] : attempts_) {
    if (key.first == event.session) lost.push_back(job);
  }
  std::sort(lost.begin(), lost.end());
  for (JobId job : lost) Close(jobs_.at(job));
  BATON_FAILPOINT("decode.session_lost");
}

void DecodeScheduler::On(CommandReceived event, MonotonicTime now) {
  const v1::DecodeCommand& command = event.command;
  if (!accounts_.Has(event.session)) {
    ++counters_.stale_messages;
  } else if (command.has_reserve()) {
    Reserve(event.session, command.reserve(), now);
  } else if (command.has_serve()) {
    Serve(event.session, command.serve(), now);
  } else if (command.has_release()) {
    Release(event.session, AttemptId(command.release().attempt_id()));
  } else {
    ++counters_.stale_messages;
  }
}

void DecodeScheduler::On(Tick, MonotonicTime) {}

void DecodeScheduler::On(DrainStarted, MonotonicTime) { draining_ = true; }

void DecodeScheduler::On(ShutDown, MonotonicTime) {
  draining_ = true;
  std::vector<JobId> open;
  for (const auto& [key, job] : attempts_) open.push_back(job);
  std::sort(open.begin(), open.end());
  for (JobId job : open) {
    Close(jobs_.at(job), absl::UnavailableError("decode worker shuts down"),
          true, v1::FAILURE_CAUSE_LOAD);
  }
}

void DecodeScheduler::ExpireDeadlines(MonotonicTime now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Close(jobs_.at(deadlines_.begin()->second),
          absl::DeadlineExceededError("deadline passed on the decode worker"),
          false, v1::FAILURE_CAUSE_REQUEST);
    BATON_FAILPOINT("decode.deadline");
  }
}

void DecodeScheduler::Close(DecodeJob& job) {
  Close(job, absl::OkStatus(), false, v1::FAILURE_CAUSE_UNSPECIFIED);
}

void DecodeScheduler::Close(DecodeJob& job, const absl::Status& failure,
                            bool retryable, v1::FailureCause cause) {
  BATON_CHECK(job.phase != Phase::kClosing);
  attempts_.erase({job.session, job.attempt});
  deadlines_.erase({job.deadline, job.id});
  chunks_.Remove(job.id);
  if (job.local) {
    accounts_.ReturnTokens(job.session,
                           job.request.context_tokens - job.computed);
  }
  sequences_ -= static_cast<uint32_t>(
      job.branched ? job.branches.size() : job.request.choices.size());
  if (!failure.ok()) {
    SendFailure(job.session, job.attempt, failure, retryable, cause);
  }
  if (job.phase == Phase::kOpening || job.phase == Phase::kLanding) {
    MoveBlocks(job.context, &job.context_use, BlockUse::kQuarantine);
    if (job.landing.has_value() && !job.landing_failed) {
      actions_.push_back(CancelLanding{*job.landing});
    }
  }
  job.phase = Phase::kClosing;
  GiveBackBlocks(job);
  EraseIfOver(job);
}

void DecodeScheduler::GiveBackBlocks(DecodeJob& job) {
  if (job.in_step) return;
  if (job.context_use != BlockUse::kQuarantine ||
      BATON_MUTANT("no_quarantine")) {
    ReleaseBlocks(job.context, &job.context_use);
  }
  ReleaseBlocks(job.growth, &job.growth_use);
  for (const Branch& branch : job.branches) {
    BATON_CHECK(pool_.Release(branch.blocks, BlockUse::kRunning).ok());
  }
  job.branches.clear();
}

void DecodeScheduler::EraseIfOver(DecodeJob& job) {
  if (job.phase == Phase::kClosing && !job.in_step &&
      !job.context_use.has_value()) {
    jobs_.erase(job.id);
  }
}

void DecodeScheduler::MoveBlocks(const std::vector<BlockRef>& blocks,
                                 std::optional<BlockUse>* use, BlockUse to) {
  BATON_CHECK(pool_.Move(blocks, use->value(), to).ok());
  *use = to;
}

void DecodeScheduler::ReleaseBlocks(const std::vector<BlockRef>& blocks,
                                    std::optional<BlockUse>* use) {
  if (!use->has_value()) return;
  BATON_CHECK(pool_.Release(blocks, use->value()).ok());
  use->reset();
}

void DecodeScheduler::SendFailure(SessionId session, AttemptId attempt,
                                  const absl::Status& failure, bool retryable,
                                  v1::FailureCause cause) {
  ++counters_.failed;
  v1::DecodeEvent event;
  v1::AttemptFailure& failed = *event.mutable_failed();
  failed.set_attempt_id(attempt.value());
  failed.set_code(static_cast<int>(failure.code()));
  failed.set_message(std::string(failure.message()));
  failed.set_retryable(retryable);
  failed.set_cause(cause);
  Send(session, std::move(event));
}

void DecodeScheduler::Send(SessionId session, v1::DecodeEvent event) {
  if (!accounts_.Has(session)) return;
  actions_.push_back(SendEvent{session, std::move(event)});
}

v1::WorkerLoad DecodeScheduler::Load() const {
  const Ledger& ledger = pool_.ledger();
  uint32_t running = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.phase == Phase::kDecoding) {
      running += static_cast<uint32_t>(job.branches.size());
    }
  }
  v1::WorkerLoad load;
  load.set_free_blocks(ledger.free);
  load.set_prefix_blocks(ledger[BlockUse::kPrefix]);
  load.set_running_blocks(ledger[BlockUse::kRunning]);
  load.set_sending_blocks(ledger[BlockUse::kSending]);
  load.set_landing_blocks(ledger[BlockUse::kLanding]);
  load.set_quarantine_blocks(ledger[BlockUse::kQuarantine]);
  load.set_running_sequences(running);
  load.set_waiting_sequences(sequences_ - running);
  load.set_queued_prefill_tokens(chunks_.tokens());
  load.set_draining(draining_);
  load.set_steps(counters_.steps);
  return load;
}

void DecodeScheduler::ReportLoad(MonotonicTime now) {
  for (SessionAccounts::Report& report : accounts_.Due(Load(), now)) {
    v1::DecodeEvent event;
    *event.mutable_load() = std::move(report.load);
    Send(report.session, std::move(event));
  }
}

}  // namespace baton::decode
