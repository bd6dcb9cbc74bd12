#include "tests/simulation/toy_drafter.h"

#include <memory>

#include "tests/simulation/toy_model.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

ToyDrafter::ToyDrafter(const Sequence& sequence, uint32_t version,
                       double wrong_guesses)
    : wrong_guesses_(wrong_guesses),
      sequence_(std::make_shared<const SequenceParams>(sequence.params()),
                ToyVocabulary(), sequence.choice(), {}),
      digest_(ToyOrigin(version)) {}

void ToyDrafter::Append(TokenId token) {
  digest_ = ExtendDigest(digest_, token);
  if (fed_++ >= sequence_.params().prompt.size()) sequence_.Append(token);
}

void ToyDrafter::Propose(size_t most,
                         std::vector<decode::DraftToken>* draft) const {
  draft->clear();
  Sequence ahead = sequence_;
  uint64_t digest = digest_;
  Random random(digest);
  while (draft->size() < most && !ahead.finished()) {
    const SampledToken drawn = ToyDraw(digest, ahead.params().sampling,
                                       ahead.counts(), ahead.NextDraw());
    const bool wrong = random.Chance(wrong_guesses_);
    draft->push_back({wrong ? (drawn.token + 1) % kToyVocabulary : drawn.token,
                      decode::Evidence(4 + draft->size(), wrong, true)});
    ahead.Append(drawn.token);
    digest = ExtendDigest(digest, drawn.token);
  }
}

}  // namespace baton::simulation
