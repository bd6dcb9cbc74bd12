#ifndef BATON_COMMON_WORKER_STEP_BUDGET_H_
#define BATON_COMMON_WORKER_STEP_BUDGET_H_

#include <cstdint>

#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/cost_model/step_shape.h"

namespace baton {

// How much prefill may join a step: what is predicted to end within `target`,
// but always enough to go on at a fair price, so that a slow machine does not
// crawl.
struct StepBudget {
  uint32_t max_tokens = 128;           // what the buffers of a step hold
  Duration target = Duration::zero();  // of a step; zero: max_tokens always

  // Prompt tokens from position `first` on beside `others`, 1..max_tokens.
  uint32_t PromptTokens(const CostModel& costs, const StepShape& others,
                        uint32_t first) const;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_STEP_BUDGET_H_
