#ifndef BATON_COMMON_COST_MODEL_THROUGHPUT_H_
#define BATON_COMMON_COST_MODEL_THROUGHPUT_H_

#include <cstdint>

#include "common/cost_model/cost_model.h"

namespace baton {

// What costs mean for the work that workers are chosen, paced and shown by.
// Costs are positive and finite.

// The decode rows of a step: one of each sequence.
struct DecodeBatch {
  uint64_t sequences = 0;
  uint64_t positions = 0;  // that the rows see, over all sequences

  // With `sequences` more whose rows see `position` positions each.
  DecodeBatch With(uint64_t more, uint64_t position) const {
    return {sequences + more, positions + more * position};
  }
};

// Of a step with these rows alone; 0 without any.
double DecodeStepSeconds(const StepCosts& costs, const DecodeBatch& batch);

// Of reading `tokens` of a prompt, alone, in steps of at most `step_tokens`
// (>= 1) from position 0 on, with logits at its end.
double PrefillSeconds(const StepCosts& costs, uint64_t tokens,
                      uint32_t step_tokens);

// Prompt tokens per second where steps are full and prompts short.
double PrefillTokensPerSecond(const StepCosts& costs, uint32_t step_tokens);

// Rows up to which a step costs no more than one row: the crossover of memory
// and arithmetic, T*.
double FreeRows(const StepCosts& costs);

}  // namespace baton

#endif  // BATON_COMMON_COST_MODEL_THROUGHPUT_H_
