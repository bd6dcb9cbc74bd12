#ifndef BATON_DECODE_WORKER_SPECULATION_SPECULATOR_H_
#define BATON_DECODE_WORKER_SPECULATION_SPECULATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/sequence/sequence.h"
#include "decode_worker/speculation/acceptance_estimate.h"
#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

// Speculation of one choice: its drafter, which follows the sequence, and how
// well that has done. Pure.
class Speculator {
 public:
  // Tokens that one call of Propose feeds the drafter at most: a long prompt is
  // read in several steps.
  static constexpr uint32_t kTokensPerStep = 4096;

  explicit Speculator(std::unique_ptr<Drafter> drafter);

  // Guesses what follows the sequence, at most `most` tokens; none while the
  // drafter still reads the prompt.
  absl::Span<const DraftToken> Propose(const Sequence& sequence, size_t most);
  // Of the guesses, each given that those before it are right. Valid until the
  // next proposal.
  absl::Span<const double> acceptance() const { return acceptance_; }

  // What came after the sequence that the last proposal was for.
  void Observe(absl::Span<const TokenId> tokens);

  // Proposes nothing from now on: a guess broke a step.
  void Stop() { stopped_ = true; }

 private:
  std::unique_ptr<Drafter> drafter_;
  AcceptanceEstimate estimate_;
  uint64_t fed_ = 0;  // positions of the sequence
  bool stopped_ = false;
  std::vector<DraftToken> draft_;
  std::vector<double> acceptance_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATOR_H_
