// Part of DecodeScheduler: guesses that steps verify.
#include <algorithm>

#include "common/base/check.h"
#include "decode_worker/decode_scheduler.h"
#include "decode_worker/speculation/speculation_control.h"

namespace baton::decode {

Speculator* DecodeScheduler::SpeculatorOf(DecodeJob& job,
                                          const Branch& branch) {
  if (!options_.speculation.make_drafter) return nullptr;
  job.speculators.resize(job.request.choices.size());
  auto& speculator =
      job.speculators[branch.sequence - job.request.choices.data()];
  if (speculator == nullptr) {
    speculator = std::make_unique<Speculator>(
        options_.speculation.make_drafter(*branch.sequence));
  }
  return speculator.get();
}

void DecodeScheduler::PlanDrafts(StepPlan* plan) {
  const SpeculationOptions& speculation = options_.speculation;
  if (!speculation.make_drafter) return;
  std::vector<DraftOffer> offers;
  std::vector<absl::Span<const DraftToken>> guesses;
  std::vector<size_t> spans;
  for (size_t i = 0; i < step_.size(); ++i) {
    if (step_[i].prefill_tokens > 0) continue;
    DecodeJob& job = jobs_.at(step_[i].job);
    const Branch& branch = job.branches[step_[i].branch];
    const Sequence& sequence = *branch.sequence;
    // The last token's KV is never needed.
    const size_t left =
        sequence.params().max_tokens - sequence.generated().size() - 1;
    Speculator& speculator = *SpeculatorOf(job, branch);
    guesses.push_back(speculator.Propose(
        sequence, std::min<size_t>(left, speculation.max_draft_tokens)));
    offers.push_back({plan->spans[i].first_position, speculator.acceptance()});
    spans.push_back(i);
  }
  std::vector<uint32_t> counts;
  if (costs_.has_value() && !speculation.always) {
    counts = ChooseDrafts(costs_->costs(), ShapeOf(*plan), offers,
                          speculation.max_draft_rows);
  } else {
    uint32_t room = speculation.max_draft_rows;
    for (const auto& guess : guesses) {
      counts.push_back(std::min(room, static_cast<uint32_t>(guess.size())));
      room -= counts.back();
    }
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    if (counts[i] == 0) continue;
    AddDrafts(step_[spans[i]], guesses[i].first(counts[i]),
              &plan->spans[spans[i]], plan);
  }
}

void DecodeScheduler::AddDrafts(Row& row, absl::Span<const DraftToken> guesses,
                                PlannedSpan* span, StepPlan* plan) {
  DecodeJob& job = jobs_.at(row.job);
  Branch& branch = job.branches[row.branch];
  const auto wanted = static_cast<uint32_t>(guesses.size());
  row.drafts = CoverRows(job, branch, 1 + wanted) - 1;
  if (row.drafts == 0) return;
  guesses = guesses.first(row.drafts);
  span->drafted = true;
  for (const DraftToken& guess : guesses) span->tokens.push_back(guess.token);
  const auto begun =
      branch.blocks.begin() + static_cast<ptrdiff_t>(span->blocks.size());
  const auto end = branch.blocks.begin() +
                   BlocksFor(span->first_position + span->tokens.size());
  plan->cleared.insert(plan->cleared.end(), begun, end);
  span->blocks.insert(span->blocks.end(), begun, end);
}

void DecodeScheduler::JudgeDrafts(const Row& row,
                                  absl::Span<const SampledToken> drawn,
                                  size_t appended) {
  DecodeJob& job = jobs_.at(row.job);
  Speculator* const speculator = SpeculatorOf(job, job.branches[row.branch]);
  if (speculator == nullptr) return;
  std::vector<TokenId> tokens;
  for (const SampledToken& token : drawn) tokens.push_back(token.token);
  speculator->Observe(tokens);
  if (row.drafts == 0) return;
  const auto accepted = static_cast<uint32_t>(drawn.size() - 1);
  job.drafted += row.drafts;
  job.accepted += accepted;
  counters_.speculation.Add(row.drafts, accepted);
  counters_.speculation.saved_rows += appended - 1;
}

}  // namespace baton::decode
