#include "common/cost_model/throughput.h"

#include <gtest/gtest.h>

#include <vector>

namespace baton {
namespace {

constexpr StepCosts kCosts = {.fixed = 1e-4,
                              .weights = 3e-3,
                              .row = 0.4e-3,
                              .logit_row = 0.2e-3,
                              .kv_token = 0.8e-6,
                              .pair = 0.15e-6};

TEST(Throughput, ADecodeStepIsThatOfItsRows) {
  for (const uint32_t sequences : {1u, 7u, 8u, 40u}) {
    StepShape step;
    DecodeBatch batch;
    for (uint32_t i = 0; i < sequences; ++i) {
      step.spans.push_back({100 * i, 1});
      batch = batch.With(1, 100 * i + 1);
    }
    step.logit_rows = sequences;
    EXPECT_DOUBLE_EQ(DecodeStepSeconds(kCosts, batch),
                     StepSeconds(kCosts, step))
        << sequences;
  }
  EXPECT_EQ(DecodeStepSeconds(kCosts, {}), 0);
}

TEST(Throughput, APromptTakesItsSteps) {
  // Steps of 100 rows, bound by arithmetic, and a last one of 50.
  double seconds = 0;
  for (const uint32_t first : {0u, 100u, 200u}) {
    const uint32_t rows = first == 200 ? 50 : 100;
    seconds += StepSeconds(kCosts, {{{first, rows}}, first == 200 ? 1u : 0u});
  }
  EXPECT_NEAR(PrefillSeconds(kCosts, 250, 100), seconds, 0.01 * seconds);
  EXPECT_EQ(PrefillSeconds(kCosts, 0, 100), 0);
  // One row is bound by memory.
  EXPECT_NEAR(PrefillSeconds(kCosts, 1, 100),
              StepSeconds(kCosts, {{{0, 1}}, 1}), 1e-6);
}

TEST(Throughput, LargerStepsAreNeverSlower) {
  double before = 0;
  for (const uint32_t rows : {1u, 4u, 16u, 64u}) {
    const double rate = PrefillTokensPerSecond(kCosts, rows);
    EXPECT_GT(rate, before);
    before = rate;
  }
}

TEST(Throughput, FreeRowsAreTheCrossover) {
  EXPECT_DOUBLE_EQ(FreeRows(kCosts), 7.5);
}

}  // namespace
}  // namespace baton
