// Part of DecodeScheduler: what runs in a step and what becomes of it.
#include <algorithm>
#include <map>
#include <set>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {

void DecodeScheduler::JoinReady(MonotonicTime now) {
  if (options_.batching == Batching::kStatic && BatchRuns()) return;
  for (auto& [id, job] : jobs_) {
    if (job.phase != Phase::kReady) continue;
    job.queue_ms = Milliseconds(now - job.ready);
    if (job.local) {
      job.phase = Phase::kPrefilling;
      job.prefill_started = now;
      chunks_.Add(id, job.request.context_tokens);
    } else {
      job.phase = Phase::kDecoding;
      job.decode_started = now;
    }
  }
}

bool DecodeScheduler::BatchRuns() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const DecodeJob& job = entry.second;
    return job.phase == Phase::kFetching || job.phase == Phase::kPrefilling ||
           job.phase == Phase::kDecoding ||
           (job.phase == Phase::kPreempted && job.joined());
  });
}

void DecodeScheduler::StartStep(MonotonicTime now) {
  if (step_in_flight_) return;
  ForcePreemptions();
  StepPlan plan = PlanStep(now);
  while (EndStandstill(now)) plan = PlanStep(now);
  if (step_.empty()) return;
  PlanDrafts(&plan);
  RunNext(std::move(plan), now);
  BATON_FAILPOINT("decode.step");
}

StepPlan DecodeScheduler::PlanStep(MonotonicTime now) {
  GrowTables();
  ReturnPreempted(now);
  ForgetEndedDrafts();
  StepPlan plan;
  step_.clear();
  for (auto& [id, job] : jobs_) {
    if (job.phase == Phase::kDecoding && job.covered) PlanDecode(job, &plan);
  }
  for (const auto& chunk : NextChunks(&chunks_, plan)) {
    PlanPrefill(chunk, &plan);
  }
  return plan;
}

void DecodeScheduler::PlanDecode(DecodeJob& job, StepPlan* plan) {
  ++job.steps;
  for (size_t i = 0; i < job.branches.size(); ++i) {
    const Sequence& sequence = *job.branches[i].sequence;
    PlannedSpan& span =
        PlanRows(job, i, static_cast<uint32_t>(sequence.length() - 1), 1, plan);
    span.draws.push_back(NextDrawOf(sequence, job.request.params));
    step_.push_back({.job = job.id, .branch = i});
  }
}

void DecodeScheduler::PlanPrefill(const ChunkPlanner::Chunk& chunk,
                                  StepPlan* plan) {
  DecodeJob& job = jobs_.at(chunk.job);
  if (job.branched) {
    PlanRecompute(job, chunk, plan);
    return;
  }
  job.in_step = true;
  AddPromptSpan(job.request, chunk.first, chunk.count, chunk.last, job.context,
                plan);
  step_.push_back({.job = job.id,
                   .prefill_tokens = chunk.count,
                   .prefill_ends = chunk.last});
}

void DecodeScheduler::CopyContextEnd(const DecodeJob& job, Branch& branch,
                                     StepPlan* plan) {
  if (!branch.copy_of.has_value()) return;
  plan->copies.push_back({*branch.copy_of, branch.blocks[job.demand.shared]});
  branch.copy_of.reset();
}

PlannedSpan& DecodeScheduler::PlanRows(DecodeJob& job, size_t branch,
                                       uint32_t first, uint32_t count,
                                       StepPlan* plan) {
  job.in_step = true;
  Branch& of = job.branches[branch];
  const auto blocks = of.blocks.begin();
  const uint32_t end = first + count;
  CopyContextEnd(job, of, plan);
  plan->cleared.insert(plan->cleared.end(), blocks + BlocksFor(first),
                       blocks + BlocksFor(end));
  PlannedSpan span;
  span.first_position = first;
  span.blocks.assign(blocks, blocks + BlocksFor(end));
  for (uint32_t position = first; position < end; ++position) {
    span.tokens.push_back(of.sequence->TokenAt(position));
  }
  plan->spans.push_back(std::move(span));
  return plan->spans.back();
}

void DecodeScheduler::On(StepDone event, MonotonicTime now) {
  if (!EndStep(event, now)) return;
  BATON_CHECK(event.result.spans.size() == step_.size());
  JudgeDraftModel(event.result);
  const std::vector<StepRow> step = std::exchange(step_, {});
  std::map<SessionId, v1::StepTokens> tokens;
  std::map<JobId, absl::Status> touched;  // and the first failure
  std::set<JobId> retried;                // a guess may have broken a span
  for (size_t i = 0; i < step.size(); ++i) {
    DecodeJob& job = jobs_.at(step[i].job);
    job.in_step = false;
    absl::Status& status = touched[job.id];
    if (job.phase == Phase::kClosing) continue;
    if (!event.result.spans[i].status.ok() &&
        event.result.spans[i].guesses > 0) {
      StopDrafts(step[i]);
      retried.insert(job.id);
      continue;
    }
    status.Update(TakeResult(step[i], std::move(event.result.spans[i]), now,
                             &tokens[job.session]));
  }
  for (auto& [session, batch] : tokens) {
    if (batch.tokens().empty()) continue;
    v1::DecodeEvent message;
    *message.mutable_tokens() = std::move(batch);
    Send(session, std::move(message));
  }
  BATON_FAILPOINT("decode.tokens");
  int drawn = 0, broken = 0;
  absl::Status why;
  for (const auto& [id, status] : touched) {
    DecodeJob& job = jobs_.at(id);
    if (job.phase == Phase::kClosing) {
      GiveBackBlocks(job);
      EraseIfOver(job);
    } else if (!status.ok()) {
      ++broken;
      why = status;
      Close(job, status, false, v1::FAILURE_CAUSE_WORKER);
    } else if (job.phase == Phase::kDecoding) {
      if (!retried.contains(id)) ++drawn;
      DropEndedBranches(job);
      if (job.branches.empty()) Finish(job, now);
    }
  }
  health_.Judge(drawn, broken, why, now);
}

absl::Status DecodeScheduler::TakeResult(const StepRow& row, SpanResult result,
                                         MonotonicTime now,
                                         v1::StepTokens* tokens) {
  if (!result.status.ok()) return result.status;
  DecodeJob& job = jobs_.at(row.job);
  if (row.prefill_tokens == 0) {
    TakeDecoded(row, result, tokens);
    return absl::OkStatus();
  }
  const uint32_t fresh = std::min(job.credit, row.prefill_tokens);
  job.credit -= fresh;
  accounts_.ReturnTokens(job.session, job.request.context_tokens, fresh);
  counters_.prefill_tokens += fresh;
  counters_.recomputed_tokens += row.prefill_tokens - fresh;
  if (job.branched) {
    if (row.prefill_ends) EndRecompute(job, now);
    return absl::OkStatus();
  }
  ++job.chunks;
  BATON_FAILPOINT("decode.local_chunk");
  if (!row.prefill_ends) return absl::OkStatus();
  for (size_t i = 0; i < job.request.choices.size(); ++i) {
    AppendDraw(job, &job.request.choices[i], result.draws[i], tokens);
  }
  job.prefill_ms = Milliseconds(now - job.prefill_started);
  job.decode_started = now;
  job.phase = Phase::kDecoding;
  MakeBranches(job);
  return absl::OkStatus();
}

void DecodeScheduler::TakeDecoded(const StepRow& row, const SpanResult& result,
                                  v1::StepTokens* tokens) {
  DecodeJob& job = jobs_.at(row.job);
  Sequence* const sequence = job.branches[row.branch].sequence;
  size_t appended = 0;
  for (const SampledToken& drawn : result.draws) {
    if (sequence->finished()) break;
    AppendDraw(job, sequence, drawn, tokens);
    ++appended;
  }
  counters_.decode_tokens += appended;
  JudgeDrafts(row, result, appended);
}

void DecodeScheduler::AppendDraw(DecodeJob& job, Sequence* sequence,
                                 const SampledToken& sampled,
                                 v1::StepTokens* tokens) {
  Sequence::Appended appended = sequence->Append(sampled.token);
  if (appended.finish.has_value()) NoteLength(*sequence, *appended.finish);
  *tokens->add_tokens() =
      ToDelta(job.attempt, *sequence, std::move(appended), sampled);
}

void DecodeScheduler::DropEndedBranches(DecodeJob& job) {
  std::erase_if(job.branches, [this](const Branch& branch) {
    if (!branch.sequence->finished()) return false;
    BATON_CHECK(pool_.Release(branch.blocks, BlockUse::kRunning).ok());
    --sequences_;
    return true;
  });
}

void DecodeScheduler::Finish(DecodeJob& job, MonotonicTime now) {
  ++counters_.done;
  BATON_FAILPOINT("decode.finish");
  v1::DecodeEvent event;
  v1::AttemptDone& done = *event.mutable_done();
  done.set_attempt_id(job.attempt.value());
  done.set_queue_ms(job.queue_ms);
  done.set_prefill_ms(job.prefill_ms);
  if (job.decode_started != MonotonicTime{}) {
    done.set_decode_ms(Milliseconds(now - job.decode_started));
  }
  done.set_steps(job.steps);
  done.set_prefill_chunks(job.chunks);
  done.set_drafted_tokens(job.drafted);
  done.set_accepted_tokens(job.accepted);
  Send(job.session, std::move(event));
  Close(job);
}

}  // namespace baton::decode
