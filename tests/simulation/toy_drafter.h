#ifndef BATON_TESTS_SIMULATION_TOY_DRAFTER_H_
#define BATON_TESTS_SIMULATION_TOY_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/sequence/sequence.h"
#include "common/tokens/token.h"
#include "decode_worker/speculation/drafter.h"

namespace baton::simulation {

// Knows the toy model, so that its guesses are right, but for a share of them:
// no text of the toy model could be guessed otherwise.
class ToyDrafter : public decode::Drafter {
 public:
  // For the choice that `sequence` is, of a model of that version.
  ToyDrafter(const Sequence& sequence, uint32_t version, double wrong_guesses);

  size_t BytesFor(size_t tokens) const override { return tokens; }
  void Reserve(size_t) override {}
  void Append(TokenId token) override;
  void Propose(size_t most,
               std::vector<decode::DraftToken>* draft) const override;

 private:
  const double wrong_guesses_;
  Sequence sequence_;  // without what was not fed yet
  uint64_t digest_;
  uint64_t fed_ = 0;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_TOY_DRAFTER_H_
