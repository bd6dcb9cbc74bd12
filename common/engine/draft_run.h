#ifndef BATON_COMMON_ENGINE_DRAFT_RUN_H_
#define BATON_COMMON_ENGINE_DRAFT_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/monotonic_time.h"
#include "common/engine/engine.h"
#include "common/tokens/token.h"

namespace baton {

// One sequence that a draft model guesses for.
struct DraftSpan {
  // What the model has not seen yet, with blocks that also cover the guesses
  // but the last, and the draw of the token that follows; none if `count` is 0.
  StepSpan known;
  uint32_t count = 0;  // guesses wanted; 0: only KV is computed
};

struct DraftRun {
  struct Span {
    // INTERNAL: the model's numbers broke; errors of Engine::Step: a pass with
    // it did not run. Then the KV from first_position on is of no use.
    absl::Status status;
    std::vector<TokenId> guesses;  // fewer than wanted if the status is not OK
  };
  std::vector<Span> spans;        // one per span, in order
  std::vector<Duration> elapsed;  // per forward pass
};

// Lets a draft model guess, one token after the other, all sequences together:
// each guess is drawn with the parameters and the noise of the draw that it
// foretells (Gumbel coupling), so it is that token as often as the two models
// agree. The KV of all guesses but the last is written.
DraftRun RunDrafts(Engine* engine, absl::Span<const DraftSpan> spans);

}  // namespace baton

#endif  // BATON_COMMON_ENGINE_DRAFT_RUN_H_
