#include "common/cost_model/step_shape.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(StepShapeTest, APairIsAQueryAndEachPositionThatItSees) {
  const SpanShape chunk = {.first_position = 10, .rows = 3};
  EXPECT_EQ(chunk.kv_tokens(), 13);
  EXPECT_EQ(chunk.pairs(), 11 + 12 + 13);
  const SpanShape decode = {.first_position = 99, .rows = 1};
  EXPECT_EQ(decode.pairs(), decode.kv_tokens());
}

TEST(StepShapeTest, RowsAreThoseOfAllSpans) {
  EXPECT_EQ(StepShape().rows(), 0);
  EXPECT_EQ((StepShape{.spans = {{0, 5}, {7, 2}}}).rows(), 7);
}

}  // namespace
}  // namespace baton
