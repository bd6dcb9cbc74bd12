#include "common/worker/step_budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "common/tokens/token.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 4 ms to read the weights, 1 ms a row, 10 us a cached position.
CostModel Costs() {
  const StepCosts truth = {.fixed = 1e-6,
                           .weights = 4e-3,
                           .row = 1e-3,
                           .logit_row = 1e-6,
                           .kv_token = 10e-6,
                           .pair = 1e-6};
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(512, 2048)) {
    const double took = StepSeconds(truth, step);
    probes.push_back({std::move(step), took});
  }
  return CostModel(probes);
}

TEST(StepBudgetTest, WithoutATargetTheBuffersAreTheLimit) {
  const StepBudget budget = {.max_tokens = 96};
  EXPECT_EQ(budget.PromptTokens(Costs(), {}, 0), 96);
}

TEST(StepBudgetTest, AStepEndsWithinItsTarget) {
  const CostModel costs = Costs();
  const StepBudget budget = {.max_tokens = 128, .target = milliseconds(50)};
  const StepShape decode = {std::vector<SpanShape>(8, {100, 1}), 8};
  const uint32_t tokens = budget.PromptTokens(costs, decode, 300);
  EXPECT_NEAR(tokens, 25, 2);  // 8 + 33 + 8 ms
  StepShape step = decode;
  step.spans.push_back({300, tokens});
  EXPECT_LE(costs.Predict(step), milliseconds(50));
}

TEST(StepBudgetTest, LessFitsTheMoreDecodes) {
  const CostModel costs = Costs();
  const StepBudget budget = {.max_tokens = 128, .target = milliseconds(80)};
  uint32_t last = 129;
  for (const size_t batch : {0, 10, 20, 40}) {
    const StepShape decode = {std::vector<SpanShape>(batch, {50, 1}), 0};
    const uint32_t tokens = budget.PromptTokens(costs, decode, 0);
    EXPECT_LT(tokens, last);
    last = tokens;
  }
}

TEST(StepBudgetTest, ATargetThatNothingMeetsStillLetsPrefillGoOn) {
  const CostModel costs = Costs();
  const StepShape decode = {std::vector<SpanShape>(64, {500, 1}), 64};
  const StepBudget budget = {.max_tokens = 128, .target = milliseconds(1)};
  EXPECT_EQ(budget.PromptTokens(costs, decode, 0), kBlockTokens);
  const StepBudget tiny = {.max_tokens = 3, .target = milliseconds(1)};
  EXPECT_EQ(tiny.PromptTokens(costs, decode, 0), 3);
}

TEST(StepBudgetTest, NeverMoreThanTheBuffersHold) {
  const StepBudget budget = {.max_tokens = 128, .target = seconds(100)};
  EXPECT_EQ(budget.PromptTokens(Costs(), {}, 0), 128);
}

}  // namespace
}  // namespace baton
