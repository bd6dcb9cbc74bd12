#include "prefill_worker/prefill_scheduler.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::prefill {

PrefillScheduler::PrefillScheduler(PrefillOptions options)
    : AttemptScheduler(options.epoch, options.blocks, options.budget,
                       options.health,
                       std::exchange(options.costs, std::nullopt)),
      options_(std::move(options)) {}

std::vector<Action> PrefillScheduler::Handle(Event event, MonotonicTime now) {
  std::visit([&](auto&& e) { On(std::move(e), now); }, std::move(event));
  ExpireDeadlines(now);
  ExpirePushes(now);
  ActivateWaiting(now);
  WatchCompute(now);
  DropUntrusted();
  StartStep(now);
  ReportLoad(now);
  return std::exchange(actions_, {});
}

void PrefillScheduler::On(SessionLost event, MonotonicTime now) {
  AttemptScheduler::On(event, now);
  for (JobId push : pushes_.OpenOf(event.session)) GiveUpPush(pushes_.at(push));
}

void PrefillScheduler::On(ShutDown event, MonotonicTime now) {
  AttemptScheduler::On(event, now);
  for (JobId push : pushes_.Open()) GiveUpPush(pushes_.at(push));
}

void PrefillScheduler::On(CommandReceived event, MonotonicTime now) {
  if (!accounts_.Has(event.session)) {
    ++counters_.stale_messages;
  } else if (event.command.has_start()) {
    Start(event.session, std::move(*event.command.mutable_start()), now);
  } else if (event.command.has_cancel()) {
    Cancel(event.session, AttemptId(event.command.cancel().attempt_id()));
  } else if (event.command.has_push()) {
    Push(event.session, std::move(*event.command.mutable_push()), now);
  } else {
    ++counters_.stale_messages;
  }
}

void PrefillScheduler::Start(SessionId session, v1::StartPrefill start,
                             MonotonicTime now) {
  const AttemptId attempt(start.attempt_id());
  if (jobs_.Find(session, attempt) != nullptr) {
    ++counters_.stale_messages;
    return;
  }
  ++counters_.attempts;
  absl::Status refusal;
  if (draining_ || !healthy()) {
    refusal = absl::UnavailableError(
        draining_ ? "prefill worker drains"
                  : StrCat("prefill worker: ", health_.WhyUnhealthy()));
  } else if (jobs_.open() >= options_.max_attempts) {
    refusal = absl::ResourceExhaustedError(
        StrCat("prefill queue is full (", options_.max_attempts, " attempts)"));
  }
  const uint64_t tokens = ContextTokensOf(start.sequence());
  const bool retryable = !refusal.ok();
  v1::FailureCause cause =
      healthy() ? v1::FAILURE_CAUSE_LOAD : v1::FAILURE_CAUSE_WORKER;
  if (refusal.ok()) {
    absl::StatusOr<Job> job = NewJob(session, std::move(start), now);
    if (job.ok()) {
      waiting_tokens_ += job->tokens;
      waiting_.push_back(jobs_.Add(*std::move(job)).id);
      BATON_FAILPOINT("prefill.accept");
      return;
    }
    refusal = job.status();
    cause = v1::FAILURE_CAUSE_REQUEST;
  }
  accounts_.ReturnTokens(session, tokens, tokens);
  SendFailure(session, attempt, refusal, retryable, cause);
}

absl::StatusOr<PrefillJob> PrefillScheduler::NewJob(SessionId session,
                                                    v1::StartPrefill start,
                                                    MonotonicTime now) const {
  Job job;
  job.session = session;
  job.attempt = AttemptId(start.attempt_id());
  BATON_ASSIGN_OR_RETURN(job.request,
                         ParseSequenceSpec(start.sequence(), options_.limits,
                                           options_.vocabulary));
  job.tokens = job.request.context_tokens;
  job.ticket = std::move(*start.mutable_ticket());
  if (job.ticket.token_count() != job.tokens) {
    return absl::InvalidArgumentError(
        StrCat("ticket.token_count: got ", job.ticket.token_count(),
               ", allowed ", job.tokens, " (tokens of the sequence)"));
  }
  if (job.ticket.held_tokens() != 0) {
    return absl::InvalidArgumentError(StrCat(
        "ticket.held_tokens: got ", job.ticket.held_tokens(), ", allowed 0"));
  }
  if (BlocksFor(job.tokens) > pool_.size()) {
    return absl::InvalidArgumentError(
        StrCat("sequence.prompt_token_ids: needs ", BlocksFor(job.tokens),
               " blocks, the pool has ", pool_.size()));
  }
  job.accepted = now;
  job.deadline = now + std::chrono::milliseconds(start.deadline_ms());
  return job;
}

void PrefillScheduler::Cancel(SessionId session, AttemptId attempt) {
  PrefixPush* push = pushes_.Find(session, attempt);
  if (push != nullptr) GiveUpPush(*push);
  Job* job = jobs_.Find(session, attempt);
  if (job == nullptr) {
    if (push == nullptr) ++counters_.stale_messages;
    return;
  }
  ++counters_.cancelled;
  BATON_FAILPOINT("prefill.cancel");
  Close(*job);
}

void PrefillScheduler::ActivateWaiting(MonotonicTime now) {
  while (!waiting_.empty()) {
    Job& job = jobs_.at(waiting_.front());
    MakeRoom(BlocksFor(job.tokens));
    absl::StatusOr<std::vector<BlockRef>> blocks =
        pool_.Acquire(BlocksFor(job.tokens), BlockUse::kRunning);
    if (!blocks.ok()) return;
    waiting_.pop_front();
    waiting_tokens_ -= job.tokens;
    job.blocks = *std::move(blocks);
    job.holds_running = true;
    job.phase = Phase::kRunning;
    job.link = Link::kOpening;
    chunks_.Add(job.id, job.tokens);
    const MonotonicTime lapse =
        now + std::chrono::milliseconds(job.ticket.timeout_ms());
    actions_.push_back(OpenTransfer{{TransferOwner::Kind::kAttempt, job.id},
                                    std::move(job.ticket),
                                    std::min(job.deadline, lapse)});
    BATON_FAILPOINT("prefill.activate");
  }
}

void PrefillScheduler::StartStep(MonotonicTime now) {
  if (step_in_flight_ || chunks_.empty()) return;
  StepPlan plan;
  step_ = NextChunks(&chunks_, plan);
  for (const ChunkPlanner::Chunk& chunk : step_) {
    Job& job = jobs_.at(chunk.job);
    job.in_step = true;
    if (job.chunks == 0) job.started = now;
    AddPromptSpan(job.request, chunk.first, chunk.count, chunk.last, job.blocks,
                  &plan);
  }
  RunNext(std::move(plan), now);
  BATON_FAILPOINT("prefill.step");
}

void PrefillScheduler::On(StepDone event, MonotonicTime now) {
  if (!EndStep(event, now)) return;
  BATON_CHECK(event.result.spans.size() == step_.size());
  const std::vector<ChunkPlanner::Chunk> step = std::exchange(step_, {});
  int drawn = 0, broken = 0;
  absl::Status why;
  for (size_t i = 0; i < step.size(); ++i) {
    SpanResult& result = event.result.spans[i];
    if (!result.status.ok()) {
      ++broken;
      why = result.status;
    } else if (step[i].last) {
      ++drawn;
    }
    FinishChunk(jobs_.at(step[i].job), step[i], std::move(result), now);
  }
  health_.Judge(drawn, broken, why, now);
}

void PrefillScheduler::FinishChunk(Job& job, const ChunkPlanner::Chunk& chunk,
                                   SpanResult result, MonotonicTime now) {
  job.in_step = false;
  if (job.phase == Phase::kClosing) {
    GiveBackBlocks(job);
    EraseIfOver(job);
    return;
  }
  if (!result.status.ok()) {
    Close(job, result.status, false, v1::FAILURE_CAUSE_WORKER);
    return;
  }
  job.computed += chunk.count;
  ++job.chunks;
  counters_.prefill_tokens += chunk.count;
  BATON_FAILPOINT("prefill.chunk");
  accounts_.ReturnTokens(job.session, job.tokens, chunk.count);
  if (chunk.last) {
    FinishPrefill(job, result.draws, now);
  } else {
    PushComplete(job);
  }
}

void PrefillScheduler::FinishPrefill(Job& job,
                                     const std::vector<SampledToken>& draws,
                                     MonotonicTime now) {
  BATON_CHECK(draws.size() == job.request.choices.size());
  job.sampled = now;
  v1::PrefillEvent event;
  v1::FirstTokens& first = *event.mutable_first_tokens();
  first.set_attempt_id(job.attempt.value());
  first.set_queue_ms(Milliseconds(job.started - job.accepted));
  first.set_prefill_ms(Milliseconds(now - job.started));
  first.set_prompt_tokens(
      static_cast<uint32_t>(job.request.params->prompt.size()));
  first.set_chunks(job.chunks);
  bool all_ended = true;
  for (size_t i = 0; i < draws.size(); ++i) {
    Sequence& choice = job.request.choices[i];
    Sequence::Appended appended = choice.Append(draws[i].token);
    all_ended = all_ended && appended.finish.has_value();
    *first.add_tokens() =
        ToDelta(job.attempt, choice, std::move(appended), draws[i]);
  }
  *job.seal.mutable_first_tokens() = first.tokens();
  Send(job.session, std::move(event));
  BATON_FAILPOINT("prefill.first_tokens");
  if (all_ended) {
    ++counters_.ended_at_first_token;
    BATON_FAILPOINT("prefill.ended_at_first_token");
    Close(job);
    return;
  }
  job.phase = Phase::kSending;
  PushComplete(job);
}

void PrefillScheduler::PushComplete(Job& job) {
  if (job.link != Link::kOpen) return;
  const bool all = job.phase == Phase::kSending;
  const uint32_t complete = all ? static_cast<uint32_t>(job.blocks.size())
                                : job.computed / kBlockTokens;
  for (; job.pushed < complete; ++job.pushed) {
    const uint32_t ordinal = job.pushed;
    const BlockRef& block = job.blocks[ordinal];
    BATON_CHECK(pool_.Hold({&block, 1}, BlockUse::kSending).ok());
    const uint32_t written =
        std::min<uint32_t>(kBlockTokens, job.tokens - ordinal * kBlockTokens);
    actions_.push_back(PushBlock{job.transfer, ordinal, block, written});
  }
  BATON_FAILPOINT("prefill.push");
  if (!all || !job.holds_running) return;
  BATON_FAILPOINT("prefill.seal");
  actions_.push_back(SealTransfer{job.transfer, std::move(job.seal)});
  GiveBackBlocks(job);
}

void PrefillScheduler::On(TransferOpened event, MonotonicTime) {
  if (event.owner.kind == TransferOwner::Kind::kPrefixPush) {
    OnPushOpened(pushes_.at(event.owner.job), event.transfer);
    return;
  }
  Job& job = jobs_.at(event.owner.job);
  BATON_CHECK(job.link == Link::kOpening);
  if (!event.transfer.ok()) {
    job.link = Link::kOver;
    if (job.phase == Phase::kClosing) {
      EraseIfOver(job);
    } else {
      ++counters_.transfer_failures;
      Close(job, event.transfer.status(), true, v1::FAILURE_CAUSE_TRANSFER);
    }
    return;
  }
  job.transfer = *event.transfer;
  transfers_[job.transfer] = {TransferOwner::Kind::kAttempt, job.id};
  if (job.phase == Phase::kClosing) {
    job.link = Link::kAborting;
    actions_.push_back(AbortTransfer{job.transfer});
    return;
  }
  job.link = Link::kOpen;
  PushComplete(job);
}

void PrefillScheduler::On(transfer::TransferEvent event, MonotonicTime now) {
  const auto tell = [this](TransferId transfer, auto&& attempt, auto&& push) {
    const auto it = transfers_.find(transfer);
    if (it == transfers_.end()) {
      ++counters_.stale_messages;
    } else if (it->second.kind == TransferOwner::Kind::kPrefixPush) {
      push(pushes_.at(it->second.job));
    } else {
      attempt(jobs_.at(it->second.job));
    }
  };
  if (auto* acked = std::get_if<transfer::TransferAcked>(&event)) {
    tell(
        acked->transfer, [&](Job& job) { OnAcked(job, *acked, now); },
        [&](PrefixPush& push) { OnPushAcked(push, acked->bytes); });
  } else if (auto* failed = std::get_if<transfer::TransferFailed>(&event)) {
    tell(
        failed->transfer,
        [&](Job& job) { OnTransferFailed(job, failed->status); },
        [&](PrefixPush& push) { OnPushFailed(push, failed->status); });
  } else if (auto* closed = std::get_if<transfer::TransferClosed>(&event)) {
    tell(
        closed->transfer, [&](Job& job) { OnTransferClosed(job); },
        [&](PrefixPush& push) { OnPushClosed(push); });
  } else {
    ++counters_.stale_messages;
  }
}

void PrefillScheduler::OnAcked(Job& job, const transfer::TransferAcked& acked,
                               MonotonicTime now) {
  transfers_.erase(job.transfer);
  job.link = Link::kOver;
  if (job.phase != Phase::kClosing) {
    BATON_CHECK(job.phase == Phase::kSending);
    ++counters_.handed_over;
    BATON_FAILPOINT("prefill.acked");
    v1::PrefillEvent event;
    v1::HandedOver& done = *event.mutable_handed_over();
    done.set_attempt_id(job.attempt.value());
    done.set_bytes(acked.bytes);
    done.set_blocks(acked.blocks);
    done.set_exposed_ms(Milliseconds(now - job.sampled));
    Send(job.session, std::move(event));
    KeepPrefix(job);
    Close(job);
    return;
  }
  GiveBackBlocks(job);
  EraseIfOver(job);
}

void PrefillScheduler::OnTransferFailed(Job& job, const absl::Status& status) {
  job.link = Link::kAborting;
  if (job.phase == Phase::kClosing) return;
  BATON_FAILPOINT("prefill.transfer_failed");
  // The receiver has given the landing up, before or after BEGIN; whatever for,
  // it was not the transfer.
  if (absl::IsCancelled(status) || absl::IsNotFound(status)) {
    Close(job,
          absl::UnavailableError(
              StrCat("KV landing was given up: ", ToStd(status.message()))),
          true, v1::FAILURE_CAUSE_LOAD);
    return;
  }
  ++counters_.transfer_failures;
  Close(job,
        absl::UnavailableError(
            StrCat("KV transfer to the decode worker: ", status.ToString())),
        true, v1::FAILURE_CAUSE_TRANSFER);
}

void PrefillScheduler::OnTransferClosed(Job& job) {
  transfers_.erase(job.transfer);
  job.link = Link::kOver;
  BATON_FAILPOINT("prefill.transfer_closed");
  if (job.phase != Phase::kClosing) {
    Close(job, absl::UnavailableError("KV transfer was closed"), true,
          v1::FAILURE_CAUSE_TRANSFER);
    return;
  }
  GiveBackBlocks(job);
  EraseIfOver(job);
}

void PrefillScheduler::Close(Job& job, const absl::Status& failure,
                             bool retryable, v1::FailureCause cause) {
  BATON_CHECK(job.phase != Phase::kClosing);
  jobs_.Close(job);
  if (job.phase == Phase::kWaiting) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), job.id));
    waiting_tokens_ -= job.tokens;
  }
  chunks_.Remove(job.id);
  if (!BATON_MUTANT("credit_leak")) {
    accounts_.ReturnTokens(job.session, job.tokens, job.tokens - job.computed);
  }
  if (!failure.ok()) {
    SendFailure(job.session, job.attempt, failure, retryable, cause);
  }
  if (job.link == Link::kOpen) {
    job.link = Link::kAborting;
    actions_.push_back(AbortTransfer{job.transfer});
  }
  job.phase = Phase::kClosing;
  GiveBackBlocks(job);
  EraseIfOver(job);
}

void PrefillScheduler::GiveBackBlocks(Job& job) {
  if (job.holds_running && !job.in_step) {
    BATON_CHECK(pool_.Release(job.blocks, BlockUse::kRunning).ok());
    job.holds_running = false;
  }
  if (!job.linked() || BATON_MUTANT("free_while_sending")) {
    absl::Span<const BlockRef> sent(job.blocks.data(), job.pushed);
    BATON_CHECK(pool_.Release(sent, BlockUse::kSending).ok());
    job.pushed = 0;
  }
}

void PrefillScheduler::EraseIfOver(Job& job) {
  if (job.phase != Phase::kClosing || job.holds_running || job.linked()) return;
  jobs_.Erase(job.id);
}

void PrefillScheduler::CompleteLoad(v1::WorkerLoad* load) const {
  load->set_running_sequences(
      static_cast<uint32_t>(jobs_.open() - waiting_.size()));
  load->set_waiting_sequences(static_cast<uint32_t>(waiting_.size()));
  load->set_queued_prefill_tokens(waiting_tokens_ + chunks_.tokens());
  load->set_step_prompt_tokens(PromptTokensBeside({}));
}

}  // namespace baton::prefill
