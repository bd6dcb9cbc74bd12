#include "decode_worker/batch_cap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace baton::decode {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;

// Fitted to steps that cost exactly this.
CostModel Costs(const StepCosts& truth) {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(512, 4096)) {
    const double seconds = StepSeconds(truth, step);
    probes.push_back({std::move(step), seconds});
  }
  return CostModel(probes);
}

const CostModel kCosts = Costs({.fixed = 1e-4,
                                .weights = 4e-3,
                                .row = 0.5e-3,
                                .logit_row = 0.5e-3,
                                .kv_token = 1e-6,
                                .pair = 0.2e-6});

DecodeBatch BatchOf(uint64_t sequences, uint64_t position) {
  return DecodeBatch().With(sequences, position);
}

double MillisecondsOf(const DecodeBatch& batch) {
  return 1e3 * DecodeStepSeconds(kCosts.costs(), batch);
}

TEST(BatchCap, StopsWhereTheStepWouldMissItsTarget) {
  const BatchCap cap(milliseconds(20), 64);
  uint64_t sequences = 0;
  while (cap.WhyFull(&kCosts, BatchOf(sequences, 100), 1, 100).empty()) {
    ++sequences;
  }
  EXPECT_LE(MillisecondsOf(BatchOf(sequences, 100)), 20);
  EXPECT_GT(MillisecondsOf(BatchOf(sequences + 1, 100)), 20);
  EXPECT_EQ(cap.Limit(&kCosts, BatchOf(sequences, 100)), sequences);
  EXPECT_EQ(cap.Limit(&kCosts, BatchOf(2, 100)), sequences);
  EXPECT_THAT(cap.WhyFull(&kCosts, BatchOf(sequences, 100), 1, 100),
              testing::AllOf(HasSubstr("step: "), HasSubstr("allowed 20.0")));
}

TEST(BatchCap, LongerSequencesCountAsWhatTheyCost) {
  const BatchCap cap(milliseconds(20), 64);
  EXPECT_LT(cap.Limit(&kCosts, BatchOf(4, 4000)),
            cap.Limit(&kCosts, BatchOf(4, 100)));
  EXPECT_EQ(cap.WhyFull(&kCosts, BatchOf(3, 4000), 1, 100), "");
  EXPECT_NE(cap.WhyFull(&kCosts, BatchOf(3, 4000), 1, 8000), "");
}

TEST(BatchCap, WhoIsAloneAlwaysFits) {
  const BatchCap cap(milliseconds(5), 64);
  EXPECT_EQ(cap.WhyFull(&kCosts, {}, 8, 4000), "");
  EXPECT_GE(cap.Limit(&kCosts, {}), 1u);
}

TEST(BatchCap, NearlyFreeRowsAreLetInWhereNothingMeetsTheTarget) {
  const CostModel slow = Costs({.fixed = 1e-3,
                                .weights = 0.4,
                                .row = 0.05,
                                .logit_row = 1e-3,
                                .kv_token = 1e-6,
                                .pair = 1e-6});
  const BatchCap cap(milliseconds(20), 64);
  const uint32_t limit = cap.Limit(&slow, {});
  EXPECT_GE(limit, 7u) << "rows up to 8 read the same weights";
  EXPECT_LE(limit, 9u);
  EXPECT_EQ(cap.WhyFull(&slow, BatchOf(4, 10), 1, 10), "");
  EXPECT_NE(cap.WhyFull(&slow, BatchOf(16, 10), 1, 10), "");
}

// What guesses beside the rows may take is what more rows might.
TEST(BatchCap, AStepWithGuessesHasTheSameLimit) {
  EXPECT_EQ(BatchCap(milliseconds(20), 64).StepSeconds(kCosts, BatchOf(4, 100)),
            20e-3);
  const double alone =
      DecodeStepSeconds(kCosts.costs(), DecodeBatch().With(1, 25));
  EXPECT_DOUBLE_EQ(
      BatchCap(microseconds(1), 64).StepSeconds(kCosts, BatchOf(4, 25)),
      1.1 * alone);
  EXPECT_TRUE(std::isinf(
      BatchCap(Duration::zero(), 64).StepSeconds(kCosts, BatchOf(4, 100))));
}

TEST(BatchCap, WithoutTargetOrCostsOnlyPlacesCount) {
  for (const BatchCap& cap :
       {BatchCap(Duration::zero(), 16), BatchCap(microseconds(1), 16)}) {
    EXPECT_EQ(cap.Limit(nullptr, BatchOf(3, 100)), 16u);
    EXPECT_EQ(cap.WhyFull(nullptr, BatchOf(15, 100), 1, 100), "");
    EXPECT_EQ(cap.WhyFull(nullptr, BatchOf(15, 100), 2, 100),
              "sequences: 15 of 16 are taken, 2 wanted");
  }
  EXPECT_EQ(BatchCap(Duration::zero(), 16).Limit(&kCosts, BatchOf(3, 100)),
            16u);
}

}  // namespace
}  // namespace baton::decode
