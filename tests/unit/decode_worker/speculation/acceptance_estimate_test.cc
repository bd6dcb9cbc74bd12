#include "decode_worker/speculation/acceptance_estimate.h"

#include <gtest/gtest.h>

namespace baton::decode {
namespace {

TEST(AcceptanceEstimateTest, ExpectsMoreOfLongMatchesAndLessOfSplitOnes) {
  AcceptancePrior prior;
  const AcceptanceEstimate estimate(&prior);
  for (const bool quoted : {false, true}) {
    double last = 0;
    for (const size_t matched : {1, 2, 3, 4, 5, 7, 11, 19}) {
      const double expected =
          estimate.Probability(Evidence(matched, false, quoted));
      EXPECT_GT(expected, last);
      EXPECT_LT(expected, 1);
      EXPECT_LT(estimate.Probability(Evidence(matched, true, quoted)),
                expected);
      last = expected;
    }
  }
}

TEST(AcceptanceEstimateTest, TrustsQuotesMoreThanRepetition) {
  AcceptancePrior prior;
  AcceptanceEstimate estimate(&prior);
  const Evidence quoted(3, false, true), repeated(3, false, false);
  EXPECT_EQ(estimate.Trusted(quoted), estimate.Probability(quoted));
  EXPECT_LT(estimate.Probability(repeated), estimate.Probability(quoted));
  EXPECT_EQ(estimate.Trusted(repeated), 0);
  for (int i = 0; i < 20; ++i) estimate.Observe(repeated, true);
  EXPECT_GT(estimate.Trusted(repeated), 0.5);
  EXPECT_EQ(estimate.Trusted(repeated), estimate.Probability(repeated));
}

TEST(AcceptanceEstimateTest, FollowsWhatHappensInItsClassOnly) {
  AcceptancePrior prior;
  AcceptanceEstimate estimate(&prior);
  const Evidence pair(2, false, true), other(5, false, true);
  const double untouched = estimate.Probability(other);
  for (int i = 0; i < 200; ++i) estimate.Observe(pair, true);
  EXPECT_GT(estimate.Probability(pair), 0.98);
  for (int i = 0; i < 300; ++i) estimate.Observe(pair, false);
  EXPECT_LT(estimate.Probability(pair), 0.04);
  for (int i = 0; i < 300; ++i) estimate.Observe(pair, i % 2 == 0);
  EXPECT_NEAR(estimate.Probability(pair), 0.5, 0.05);
  EXPECT_EQ(estimate.Probability(other), untouched);
}

// Whatever came before, it takes few surprises to change the mind.
TEST(AcceptanceEstimateTest, ForgetsSoon) {
  AcceptancePrior prior;
  AcceptanceEstimate estimate(&prior);
  const Evidence evidence(3, false, true);
  for (int i = 0; i < 100000; ++i) estimate.Observe(evidence, true);
  for (int i = 0; i < 23; ++i) estimate.Observe(evidence, false);
  EXPECT_NEAR(estimate.Probability(evidence), 0.5, 0.08);
}

TEST(AcceptanceEstimateTest, OneRequestTeachesTheNext) {
  for (const bool right : {false, true}) {
    AcceptancePrior prior;
    const Evidence evidence(4, false, false);
    const double before = AcceptanceEstimate(&prior).Probability(evidence);
    AcceptanceEstimate first(&prior);
    for (int i = 0; i < 40; ++i) first.Observe(evidence, right);
    const AcceptanceEstimate next(&prior);
    EXPECT_EQ(next.Probability(evidence) > before, right);
    // More of its own request than of others.
    EXPECT_EQ(first.Probability(evidence) > next.Probability(evidence), right);
  }
}

}  // namespace
}  // namespace baton::decode
