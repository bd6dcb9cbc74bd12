#ifndef BATON_DECODE_WORKER_SPECULATION_SPECULATION_CONTROL_H_
#define BATON_DECODE_WORKER_SPECULATION_SPECULATION_CONTROL_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "common/cost_model/cost_model.h"
#include "common/cost_model/step_shape.h"

namespace baton::decode {

// A decode span of a step and what is known of the tokens that may follow.
struct DraftOffer {
  uint32_t position = 0;  // of the span's only row
  // That a guess is right, given that those before it are.
  absl::Span<const double> acceptance;
};

// What guesses must not exceed.
struct DraftLimits {
  uint32_t rows = 0;  // of guesses in a step
  // Of the whole step, passes of a draft model with it.
  double seconds = std::numeric_limits<double>::infinity();
};

// The passes of a model that makes the guesses: all first ones in one pass,
// then all second ones and so on.
struct DraftPasses {
  const StepCosts* costs = nullptr;  // null: no model guesses
  StepShape reading = {};            // what the first pass reads besides
};

// How many guesses of each offer are worth a row in this step, so that the
// expected tokens per second are most, all zero unless that gains something.
// `step` is the step without guesses, the spans of the offers and prompt chunks
// beside them. A guess that is verified costs a row behind all others: where
// rows are free (below the crossover) many are worth it, in a full batch (whose
// products take twice as long as the weights and the fixed part of a step)
// none; a guess that is probably wrong never.
std::vector<uint32_t> ChooseDrafts(const StepCosts& costs,
                                   const StepShape& step,
                                   const std::vector<DraftOffer>& offers,
                                   const DraftLimits& limits,
                                   const DraftPasses& draft = {});

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATION_CONTROL_H_
