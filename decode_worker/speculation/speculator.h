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
#include "decode_worker/speculation/drafter_memory.h"

namespace baton::decode {

// What the speculators of a worker share.
struct Drafting {
  DrafterKinds drafters;  // the best that fits the memory is taken
  DrafterMemory memory;
  AcceptancePrior prior;
};

// Speculation of one choice: its drafter, which follows the sequence, and how
// well that has done. Pure.
class Speculator {
 public:
  explicit Speculator(std::shared_ptr<Drafting> drafting);
  ~Speculator() { Pause(); }
  Speculator(const Speculator&) = delete;
  Speculator& operator=(const Speculator&) = delete;

  // Tokens of the sequence that a drafter would have to read before it guesses;
  // 0 also where there is none.
  uint64_t Unread(const Sequence& sequence);
  // Reads so many of them.
  void Read(const Sequence& sequence, uint64_t tokens);

  // Guesses what follows the sequence, at most `most` tokens; none while
  // something is unread.
  absl::Span<const DraftToken> Propose(const Sequence& sequence, size_t most);
  // What to count on of the guesses, each given that those before it are right
  // (see AcceptanceEstimate::Trusted). Valid until the next proposal.
  absl::Span<const double> acceptance() const { return acceptance_; }

  // What came after the sequence that the last proposal was for.
  void Observe(absl::Span<const TokenId> tokens);

  // Frees the drafter; it starts again from the first token when the sequence
  // goes on. What was learned stays.
  void Pause();
  // Proposes nothing from now on: a guess broke a step.
  void Stop();

 private:
  // Takes memory for `tokens` tokens and more, whatever kind of drafter that
  // leaves; one that was too small begins again. False: there is no drafter.
  bool MakeRoom(const Sequence& sequence, uint64_t tokens);
  void Drop();

  const std::shared_ptr<Drafting> drafting_;
  size_t kind_ = 0;  // of the drafter, or the next to try
  std::unique_ptr<Drafter> drafter_;
  uint64_t room_ = 0;  // tokens
  size_t bytes_ = 0;   // taken for them
  // As much was taken when there was no memory for it; 0: there was.
  size_t refused_at_ = 0;
  AcceptanceEstimate estimate_;
  uint64_t fed_ = 0;  // positions of the sequence
  bool stopped_ = false;
  std::vector<DraftToken> draft_;
  std::vector<double> acceptance_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATOR_H_
