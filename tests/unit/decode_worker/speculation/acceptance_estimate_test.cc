#include "decode_worker/speculation/acceptance_estimate.h"

#include <gtest/gtest.h>

namespace baton::decode {
namespace {

TEST(AcceptanceEstimateTest, ExpectsMoreOfLongMatchesAndLessOfSplitOnes) {
  const AcceptanceEstimate estimate;
  double last = 0;
  for (const size_t matched : {1, 2, 3, 4, 5, 7, 11, 19}) {
    const double expected = estimate.Probability(Evidence(matched, false));
    EXPECT_GT(expected, last);
    EXPECT_LT(expected, 1);
    EXPECT_LT(estimate.Probability(Evidence(matched, true)), expected);
    last = expected;
  }
}

TEST(AcceptanceEstimateTest, FollowsWhatHappensInItsClassOnly) {
  AcceptanceEstimate estimate;
  const Evidence pair(2, false), other(5, false);
  const double untouched = estimate.Probability(other);
  for (int i = 0; i < 100; ++i) estimate.Observe(pair, true);
  EXPECT_GT(estimate.Probability(pair), 0.98);
  for (int i = 0; i < 100; ++i) estimate.Observe(pair, false);
  EXPECT_LT(estimate.Probability(pair), 0.02);
  for (int i = 0; i < 100; ++i) estimate.Observe(pair, i % 2 == 0);
  EXPECT_NEAR(estimate.Probability(pair), 0.5, 0.05);
  EXPECT_EQ(estimate.Probability(other), untouched);
}

// Whatever came before, it takes few surprises to change the mind.
TEST(AcceptanceEstimateTest, ForgetsSoon) {
  AcceptanceEstimate estimate;
  const Evidence evidence(3, false);
  for (int i = 0; i < 100000; ++i) estimate.Observe(evidence, true);
  for (int i = 0; i < 14; ++i) estimate.Observe(evidence, false);
  EXPECT_NEAR(estimate.Probability(evidence), 0.5, 0.05);
}

}  // namespace
}  // namespace baton::decode
