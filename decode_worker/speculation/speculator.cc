#include "decode_worker/speculation/speculator.h"

#include <algorithm>
#include <utility>

namespace baton::decode {

Speculator::Speculator(std::unique_ptr<Drafter> drafter)
    : drafter_(std::move(drafter)) {}

absl::Span<const DraftToken> Speculator::Propose(const Sequence& sequence,
                                                 size_t most) {
  draft_.clear();
  acceptance_.clear();
  if (stopped_) return draft_;
  const uint64_t end = std::min(sequence.length(), fed_ + kTokensPerStep);
  while (fed_ < end) drafter_->Append(sequence.TokenAt(fed_++));
  if (fed_ < sequence.length()) return draft_;
  drafter_->Propose(most, &draft_);
  for (const DraftToken& guess : draft_) {
    acceptance_.push_back(estimate_.Probability(guess.evidence));
  }
  return draft_;
}

void Speculator::Observe(absl::Span<const TokenId> tokens) {
  const size_t known = std::min(tokens.size(), draft_.size());
  for (size_t i = 0; i < known; ++i) {
    const bool right = draft_[i].token == tokens[i];
    estimate_.Observe(draft_[i].evidence, right);
    if (!right) break;
  }
  draft_.clear();
}

}  // namespace baton::decode
