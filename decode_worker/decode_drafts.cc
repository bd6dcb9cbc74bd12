// Part of DecodeScheduler: guesses that steps verify.
#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {
namespace {

constexpr size_t kProposedPerRow = 4;

DraftModelPlanner::Key DraftKey(const DecodeJob& job, const Branch& branch) {
  return {job.id, branch.sequence->choice()};
}

DecodeBatch BatchOf(const std::vector<DraftOffer>& offers) {
  DecodeBatch batch;
  for (const DraftOffer& offer : offers) batch = batch.With(1, offer.position);
  return batch;
}

}  // namespace

Speculator& DecodeScheduler::SpeculatorOf(DecodeJob& job,
                                          const Branch& branch) {
  job.speculators.resize(job.request.choices.size());
  auto& speculator =
      job.speculators[branch.sequence - job.request.choices.data()];
  if (speculator == nullptr) {
    speculator = std::make_unique<Speculator>(drafting_);
  }
  return *speculator;
}

void DecodeScheduler::PlanDrafts(StepPlan* plan) {
  if (drafting_ != nullptr) {
    PlanGuesses(plan);
  } else if (draft_model_.has_value()) {
    PlanModelGuesses(plan);
  }
}

template <class Visit>
void DecodeScheduler::ForEachDecodeRow(Visit visit) {
  for (size_t i = 0; i < step_.size(); ++i) {
    if (step_[i].prefill_tokens > 0) continue;
    DecodeJob& job = jobs_.at(step_[i].job);
    visit(i, job, job.branches[step_[i].branch]);
  }
}

size_t DecodeScheduler::MostDrafts(const Sequence& sequence) const {
  // The last token's KV is never needed.
  const size_t left =
      sequence.params().max_tokens - sequence.generated().size() - 1;
  return std::min<size_t>(left, options_.speculation.max_draft_tokens);
}

std::vector<uint32_t> DecodeScheduler::DraftCounts(
    const StepPlan& plan, const std::vector<DraftOffer>& offers,
    const DraftPasses& draft) const {
  const SpeculationOptions& speculation = options_.speculation;
  if (costs_.has_value() && !speculation.always) {
    return ChooseDrafts(costs_->costs(), ShapeOf(plan), offers,
                        {.rows = speculation.max_draft_rows,
                         .seconds = cap_.StepSeconds(*costs_, BatchOf(offers))},
                        draft);
  }
  std::vector<uint32_t> counts;
  uint32_t room = speculation.max_draft_rows;
  for (const DraftOffer& offer : offers) {
    counts.push_back(
        std::min(room, static_cast<uint32_t>(offer.acceptance.size())));
    room -= counts.back();
  }
  return counts;
}

void DecodeScheduler::PlanGuesses(StepPlan* plan) {
  std::vector<uint64_t> unread;
  ForEachDecodeRow([&](size_t, DecodeJob& job, Branch& branch) {
    unread.push_back(SpeculatorOf(job, branch).Unread(*branch.sequence));
  });
  if (unread.empty()) return;
  const std::vector<uint32_t> shares =
      ShareTokens(unread, options_.speculation.drafter_tokens);
  // Most of what many choices propose finds no row.
  const size_t most = std::max<size_t>(
      1, kProposedPerRow * options_.speculation.max_draft_rows / unread.size());
  std::vector<DraftOffer> offers;
  std::vector<absl::Span<const DraftToken>> guesses;
  ForEachDecodeRow([&](size_t span, DecodeJob& job, Branch& branch) {
    Speculator& speculator = SpeculatorOf(job, branch);
    const Sequence& sequence = *branch.sequence;
    speculator.Read(sequence, shares[offers.size()]);
    guesses.push_back(
        speculator.Propose(sequence, std::min(most, MostDrafts(sequence))));
    offers.push_back(
        {plan->spans[span].first_position, speculator.acceptance()});
  });
  const std::vector<uint32_t> counts = DraftCounts(*plan, offers, {});
  size_t offer = 0;
  ForEachDecodeRow([&](size_t i, DecodeJob& job, Branch& branch) {
    const uint32_t wanted = counts[offer];
    const auto& guess = guesses[offer++];
    const uint32_t covered = CoverRows(job, branch, 1 + wanted) - 1;
    AddDraftRows(step_[i], branch, covered, &plan->spans[i], plan);
    for (const DraftToken& token : guess.first(covered)) {
      plan->spans[i].tokens.push_back(token.token);
    }
  });
}

void DecodeScheduler::PlanModelGuesses(StepPlan* plan) {
  std::vector<DraftOffer> offers;
  ForEachDecodeRow([&](size_t i, DecodeJob& job, Branch& branch) {
    offers.push_back(
        {plan->spans[i].first_position,
         draft_model_->Acceptance(DraftKey(job, branch), *branch.sequence,
                                  MostDrafts(*branch.sequence))});
  });
  BeginDraftStep(*plan, offers);
  ReadForDrafts(&offers, plan);
  const std::vector<uint32_t> counts = DraftCounts(
      *plan, offers, {draft_model_->costs(), draft_model_->reading()});
  size_t offer = 0;
  ForEachDecodeRow([&](size_t i, DecodeJob& job, Branch& branch) {
    const uint32_t wanted = counts[offer++];
    const uint32_t covered =
        wanted == 0 ? 0 : CoverRows(job, branch, 1 + wanted) - 1;
    const uint32_t planned = draft_model_->Plan(
        DraftKey(job, branch), *branch.sequence, i, covered, plan);
    AddDraftRows(step_[i], branch, planned, &plan->spans[i], plan);
  });
}

void DecodeScheduler::BeginDraftStep(const StepPlan& plan,
                                     const std::vector<DraftOffer>& offers) {
  Duration step{}, spare = Duration::max();
  if (costs_.has_value()) {
    step = costs_->Predict(ShapeOf(plan));
    const double seconds =
        cap_.StepSeconds(*costs_, BatchOf(offers)) - Seconds(step);
    if (std::isfinite(seconds) && !options_.speculation.always) {
      spare = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(seconds));
    }
  }
  draft_model_->BeginStep(step, spare);
}

void DecodeScheduler::ReadForDrafts(std::vector<DraftOffer>* offers,
                                    StepPlan* plan) {
  std::vector<bool> unread;
  ForEachDecodeRow([&](size_t, DecodeJob& job, Branch& branch) {
    unread.push_back(
        draft_model_->Unread(DraftKey(job, branch), *branch.sequence));
  });
  if (std::find(unread.begin(), unread.end(), true) == unread.end()) return;
  // Where nothing would be guessed nothing is read.
  const std::vector<uint32_t> wanted =
      DraftCounts(*plan, *offers, {draft_model_->costs()});
  size_t offer = 0;
  ForEachDecodeRow([&](size_t, DecodeJob& job, Branch& branch) {
    const size_t i = offer++;
    if (!unread[i]) return;
    if (wanted[i] == 0 ||
        !draft_model_->Read(DraftKey(job, branch), *branch.sequence, plan)) {
      (*offers)[i].acceptance = {};
    }
  });
}

void DecodeScheduler::AddDraftRows(StepRow& row, const Branch& branch,
                                   uint32_t count, PlannedSpan* span,
                                   StepPlan* plan) {
  row.drafts = count;
  if (count == 0) return;
  span->drafted = true;
  const auto begun =
      branch.blocks.begin() + static_cast<ptrdiff_t>(span->blocks.size());
  const auto end =
      branch.blocks.begin() + BlocksFor(span->first_position + 1 + count);
  if (!BATON_MUTANT("draft_block_not_cleared")) {
    plan->cleared.insert(plan->cleared.end(), begun, end);
  }
  span->blocks.insert(span->blocks.end(), begun, end);
}

void DecodeScheduler::JudgeDrafts(const StepRow& row, const SpanResult& result,
                                  size_t appended) {
  DecodeJob& job = jobs_.at(row.job);
  const Branch& branch = job.branches[row.branch];
  const auto right = static_cast<uint32_t>(result.draws.size() - 1);
  if (drafting_ != nullptr) {
    std::vector<TokenId> tokens;
    for (const SampledToken& token : result.draws) {
      tokens.push_back(token.token);
    }
    SpeculatorOf(job, branch).Observe(tokens);
  } else if (draft_model_.has_value() && row.drafts > 0) {
    draft_model_->Observe(DraftKey(job, branch), result.guesses, right);
  }
  if (result.guesses == 0) return;
  job.drafted += result.guesses;
  job.accepted += right;
  counters_.speculation.Add(result.guesses, right);
  counters_.speculation.saved_steps += appended - 1;
}

void DecodeScheduler::JudgeDraftModel(const StepResult& result) {
  if (!draft_model_.has_value()) return;
  counters_.speculation.failed_drafts +=
      draft_model_->ObserveStep(result.drafts, result.draft_elapsed);
  for (const absl::Status& status : result.drafts) {
    if (status.ok()) continue;
    counters_.speculation.failure = ToStd(status.message());
  }
}

void DecodeScheduler::StopDrafts(const StepRow& row) {
  DecodeJob& job = jobs_.at(row.job);
  const Branch& branch = job.branches[row.branch];
  if (draft_model_.has_value()) {
    draft_model_->Stop(DraftKey(job, branch));
  } else {
    SpeculatorOf(job, branch).Stop();
  }
}

void DecodeScheduler::ForgetEndedDrafts() {
  for (auto& [id, job] : jobs_) {
    for (size_t i = 0; i < job.speculators.size(); ++i) {
      const bool runs =
          job.phase == Phase::kDecoding && !job.request.choices[i].finished();
      if (!runs && job.speculators[i] != nullptr) job.speculators[i]->Pause();
    }
  }
  if (!draft_model_.has_value()) return;
  std::set<DraftModelPlanner::Key> running;
  for (const auto& [id, job] : jobs_) {
    if (job.phase != Phase::kDecoding) continue;
    for (const Branch& branch : job.branches) {
      running.insert(DraftKey(job, branch));
    }
  }
  draft_model_->KeepOnly(running);
}

}  // namespace baton::decode
