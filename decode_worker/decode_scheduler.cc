#include "decode_worker/decode_scheduler.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::decode {
namespace {

std::shared_ptr<Drafting> MakeDrafting(const SpeculationOptions& options) {
  if (options.drafters.empty()) return nullptr;
  return std::shared_ptr<Drafting>(
      new Drafting{options.drafters, DrafterMemory(options.drafter_bytes), {}});
}

}  // namespace

DecodeScheduler::DecodeScheduler(DecodeOptions options)
    : AttemptScheduler(options.epoch, options.blocks, options.budget,
                       options.health,
                       std::exchange(options.costs, std::nullopt)),
      options_(std::move(options)),
      cap_(options_.tpot_target, options_.max_sequences),
      lengths_(options_.length_quantile),
      return_choice_(options_.preempted_return, options_.block_patience / 2),
      drafting_(MakeDrafting(options_.speculation)) {
  if (options_.speculation.draft_model.has_value()) {
    draft_model_.emplace(options_.epoch, *options_.speculation.draft_model);
  }
}

std::vector<Action> DecodeScheduler::Handle(Event event, MonotonicTime now) {
  std::visit([&](auto&& e) { On(std::move(e), now); }, std::move(event));
  ExpireDeadlines(now);
  JoinReady(now);
  WatchCompute(now);
  StartStep(now);
  predicted_peak_ = PredictedPeak(nullptr);
  ReportLoad(now);
  return std::exchange(actions_, {});
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
  } else if (command.has_push_refused()) {
    On(event.session, command.push_refused(), now);
  } else {
    ++counters_.stale_messages;
  }
}

void DecodeScheduler::Close(DecodeJob& job, const absl::Status& failure,
                            bool retryable, v1::FailureCause cause) {
  BATON_CHECK(job.phase != Phase::kClosing);
  jobs_.Close(job);
  chunks_.Remove(job.id);
  accounts_.ReturnTokens(job.session, job.request.context_tokens, job.credit);
  sequences_ -= static_cast<uint32_t>(
      job.branched ? job.branches.size() : job.request.choices.size());
  if (!failure.ok()) {
    SendFailure(job.session, job.attempt, failure, retryable, cause);
  }
  if (job.phase == Phase::kOpening || job.phase == Phase::kLanding) {
    MoveBlocks(job.context, &job.context_use, BlockUse::kQuarantine);
    if (job.landing.has_value() && !job.landing_failed) {
      actions_.emplace_back(CancelLanding{*job.landing});
    }
  }
  if (job.fetch.has_value()) GiveUpFetch(job);
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
  ReleaseTables(job);
  job.branches.clear();
}

void DecodeScheduler::ReleaseTables(DecodeJob& job) {
  BATON_CHECK(pool_.Release(job.reserve, BlockUse::kRunning).ok());
  job.reserve.clear();
  for (Branch& branch : job.branches) {
    BATON_CHECK(pool_.Release(branch.blocks, BlockUse::kRunning).ok());
    branch.blocks.clear();
    branch.copy_of.reset();
  }
}

void DecodeScheduler::EraseIfOver(DecodeJob& job) {
  if (job.phase == Phase::kClosing && !job.in_step &&
      !job.context_use.has_value() && !job.fetch.has_value()) {
    jobs_.Erase(job.id);
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

void DecodeScheduler::CompleteLoad(v1::WorkerLoad* load) const {
  uint32_t running = 0;
  uint64_t positions = 0;
  StepShape rows;
  for (const auto& [id, job] : jobs_) {
    if (job.phase != Phase::kDecoding) continue;
    for (const Branch& branch : job.branches) {
      ++running;
      positions += branch.sequence->length();
      rows.spans.push_back(
          {static_cast<uint32_t>(branch.sequence->length() - 1), 1});
    }
  }
  rows.logit_rows = running;
  load->set_running_sequences(running);
  load->set_waiting_sequences(sequences_ - running);
  load->set_running_positions(positions);
  load->set_sequence_limit(
      cap_.Limit(costs_.has_value() ? &*costs_ : nullptr, AcceptedBatch()));
  load->set_step_prompt_tokens(PromptTokensBeside(rows));
  load->set_queued_prefill_tokens(chunks_.tokens());
  load->set_expected_answer_tokens(
      lengths_.Predict(0, std::numeric_limits<uint32_t>::max()));
  uint64_t spare = load->free_blocks();
  if (!jobs_.empty() && !BATON_MUTANT("spare_blocks_forget_growth")) {
    const uint64_t allowed = waiting_ > 0 ? 0 : AllowedPeak();
    spare = std::min(spare, allowed - std::min(allowed, predicted_peak()));
  }
  load->set_spare_blocks(static_cast<uint32_t>(spare));
}

}  // namespace baton::decode
