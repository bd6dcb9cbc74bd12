// Part of DecodeScheduler: what the attempts here are predicted to need.
#include <algorithm>
#include <limits>

#include "decode_worker/decode_scheduler.h"

namespace baton::decode {
namespace {

// The part of the pool that admission leaves for answers that grow longer than
// predicted.
constexpr uint32_t kReserveShare = 32;

constexpr uint32_t kForGood = std::numeric_limits<uint32_t>::max();

bool Foretold(const SequenceParams& params) {
  return params.ignore_eos && params.stop_strings.empty() &&
         params.stop_token_ids.empty();
}

}  // namespace

uint32_t DecodeScheduler::AllowedPeak() const {
  return pool_.size() - (pool_.size() + kReserveShare - 1) / kReserveShare;
}

bool DecodeScheduler::FitsWithout(const DecodeJob& job,
                                  absl::Span<DecodeJob* const> gone) const {
  uint32_t free = pool_.ledger().free;
  for (const DecodeJob* other : gone) free += other->HeldBlocks();
  // Alone everything fits: no request needs more than the pool.
  return job.ReturnBlocks() <= free &&
         (free == pool_.size() || PredictedPeak(&job, gone) <= AllowedPeak());
}

uint64_t DecodeScheduler::PredictedPeak(
    const DecodeJob* one_more, absl::Span<DecodeJob* const> gone) const {
  PeakDemand demand;
  for (const auto& [id, job] : jobs_) {
    if (std::find(gone.begin(), gone.end(), &job) != gone.end()) continue;
    if (job.phase == Phase::kClosing) {
      demand.AddHeld(job.HeldBlocks(), kForGood);
      continue;
    }
    if (job.phase != Phase::kPreempted) AddDemand(job, &demand);
    demand.AddHeld(job.LeavingBlocks(), kForGood);
  }
  demand.AddHeld(static_cast<uint32_t>(probe_.size()), 1);
  if (one_more != nullptr) AddDemand(*one_more, &demand);
  return demand.Peak();
}

void DecodeScheduler::AddDemand(const DecodeJob& job,
                                PeakDemand* demand) const {
  uint32_t longest = 0;
  auto add = [&](const Sequence& choice, uint64_t rows) {
    const uint32_t steps = StepsLeft(choice, rows);
    longest = std::max(longest, steps);
    if (job.reserved) return;
    demand->AddChoice(static_cast<uint32_t>(rows), steps, job.demand.shared);
  };
  for (const Branch& branch : job.branches) {
    add(*branch.sequence, branch.sequence->length() - 1);
  }
  if (!job.branched) {
    for (const Sequence& choice : job.request.choices) {
      add(choice, job.request.context_tokens);
    }
  }
  demand->AddHeld(job.reserved ? job.ReturnBlocks() : job.demand.shared,
                  longest);
}

uint32_t DecodeScheduler::StepsLeft(const Sequence& choice,
                                    uint64_t rows) const {
  const SequenceParams& params = choice.params();
  const auto generated = static_cast<uint32_t>(choice.generated().size());
  const uint32_t predicted =
      Foretold(params)
          ? params.max_tokens
          : std::max(lengths_.Predict(generated, params.max_tokens),
                     params.min_tokens);
  // The last token's own row is not needed.
  const uint64_t last = params.prompt.size() + predicted - 1;
  return static_cast<uint32_t>(last - std::min(last, rows));
}

void DecodeScheduler::NoteLength(const Sequence& choice,
                                 const FinishCause& finish) {
  if (Foretold(choice.params())) return;
  lengths_.Add(static_cast<uint32_t>(choice.generated().size()),
               finish.kind == FinishKind::kLength);
}

}  // namespace baton::decode
