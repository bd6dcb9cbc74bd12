#include "common/worker/step_budget.h"

#include <algorithm>

#include "common/tokens/token.h"

namespace baton {
namespace {

// From here on reading the weights is at most a third of a step.
constexpr double kFairShareOfFreeRows = 2;

}  // namespace

uint32_t StepBudget::PromptTokens(const CostModel& costs,
                                  const StepShape& others,
                                  uint32_t first) const {
  if (target <= Duration::zero()) return max_tokens;
  const double fair =
      std::max(kFairShareOfFreeRows * costs.FreeRows(), double{kBlockTokens});
  const auto least =
      static_cast<uint32_t>(std::min(fair, static_cast<double>(max_tokens)));
  return std::max(costs.RowsWithin(others, first, max_tokens, target), least);
}

}  // namespace baton
