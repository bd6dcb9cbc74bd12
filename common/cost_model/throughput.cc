#include "common/cost_model/throughput.h"

#include <algorithm>

namespace baton {

double DecodeStepSeconds(const StepCosts& costs, const DecodeBatch& batch) {
  if (batch.sequences == 0) return 0;
  const auto rows = static_cast<double>(batch.sequences);
  return costs.fixed + std::max(costs.weights, costs.row * rows) +
         costs.logit_row * rows +
         std::max(costs.kv_token, costs.pair) *
             static_cast<double>(batch.positions);
}

double PrefillSeconds(const StepCosts& costs, uint64_t tokens,
                      uint32_t step_tokens) {
  if (tokens == 0) return 0;
  const auto rows = static_cast<double>(tokens);
  const double steps = static_cast<double>((tokens - 1) / step_tokens + 1);
  // Every step but the last is full, so this is exact where full steps are
  // bound by arithmetic.
  return steps * costs.fixed +
         std::max(steps * costs.weights, costs.row * rows) + costs.logit_row +
         costs.pair * rows * (rows + 1) / 2;
}

double PrefillTokensPerSecond(const StepCosts& costs, uint32_t step_tokens) {
  return step_tokens / PrefillSeconds(costs, step_tokens, step_tokens);
}

double FreeRows(const StepCosts& costs) { return costs.weights / costs.row; }

}  // namespace baton
