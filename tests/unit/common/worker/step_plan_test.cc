#include "common/worker/step_plan.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(StepPlanTest, ItsShapeIsWhatItsTimeDependsOn) {
  StepPlan plan;
  plan.spans.resize(2);
  plan.spans[0].tokens = {1, 2, 3};
  plan.spans[0].first_position = 16;
  plan.spans[1].tokens = {4};
  plan.spans[1].first_position = 7;
  plan.spans[1].draws.resize(2);
  const StepShape step = ShapeOf(plan);
  ASSERT_EQ(step.spans.size(), 2);
  EXPECT_EQ(step.spans[0].first_position, 16);
  EXPECT_EQ(step.spans[0].rows, 3);
  EXPECT_EQ(step.spans[1].first_position, 7);
  EXPECT_EQ(step.spans[1].rows, 1);
  EXPECT_EQ(step.logit_rows, 1);  // one row, two draws
}

TEST(StepPlanTest, EveryDraftedRowHasLogits) {
  StepPlan plan;
  plan.spans.resize(2);
  plan.spans[0].tokens = {1, 2, 3};
  plan.spans[0].drafted = true;
  plan.spans[0].draws.resize(1);
  plan.spans[1].tokens = {4};
  plan.spans[1].draws.resize(1);
  EXPECT_EQ(ShapeOf(plan).logit_rows, 4u);
}

}  // namespace
}  // namespace baton
