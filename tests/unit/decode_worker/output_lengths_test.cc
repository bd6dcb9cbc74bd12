#include "decode_worker/output_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace baton::decode {
namespace {

TEST(OutputLengths, BelievesInMaxTokensWithoutEvidence) {
  OutputLengths lengths(0.75);
  EXPECT_EQ(lengths.Predict(0, 500), 500u);
  for (int i = 0; i < 3; ++i) lengths.Add(10, false);
  EXPECT_EQ(lengths.Predict(0, 500), 500u);
  for (int i = 0; i < 100; ++i) lengths.Add(10, false);
  EXPECT_EQ(lengths.Predict(0, 500), 10u);
}

TEST(OutputLengths, IsNeverBelowTheNextTokenNorAboveMaxTokens) {
  OutputLengths lengths(0.75);
  for (uint32_t i = 0; i < 400; ++i) lengths.Add(1 + i % 300, i % 7 == 0);
  for (uint32_t max : {1u, 2u, 15u, 16u, 17u, 250u, 1u << 20, ~0u}) {
    for (uint32_t generated = 0; generated < std::min(max, 400u); ++generated) {
      const uint32_t predicted = lengths.Predict(generated, max);
      ASSERT_GT(predicted, generated);
      ASSERT_LE(predicted, max);
    }
  }
}

TEST(OutputLengths, OnlyAnswersThatGotSoFarCount) {
  OutputLengths lengths(0.75);
  for (int i = 0; i < 300; ++i) lengths.Add(10, false);
  for (int i = 0; i < 60; ++i) lengths.Add(200, false);
  EXPECT_EQ(lengths.Predict(0, 1000), 10u);
  EXPECT_EQ(lengths.Predict(11, 1000), 207u) << "the end of 200's bucket";
  EXPECT_EQ(lengths.Predict(400, 1000), 1000u);
}

TEST(OutputLengths, WhatWasCutOffWantedToBeLonger) {
  OutputLengths lengths(0.5);
  for (int i = 0; i < 100; ++i) lengths.Add(16, true);
  EXPECT_EQ(lengths.Predict(0, 1000), 1000u);
  for (int i = 0; i < 90; ++i) lengths.Add(5, false);
  EXPECT_EQ(lengths.Predict(0, 1000), 1000u) << "90 of 194 end at 5";
  for (int i = 0; i < 20; ++i) lengths.Add(5, false);
  EXPECT_EQ(lengths.Predict(0, 1000), 5u);
}

TEST(OutputLengths, ForgetsOldAnswers) {
  OutputLengths lengths(0.75);
  for (int i = 0; i < 5000; ++i) lengths.Add(10, false);
  for (int i = 0; i < 3000; ++i) lengths.Add(100, false);
  EXPECT_GE(lengths.Predict(0, 1000), 100u);
}

TEST(OutputLengths, TheExtremesAreMaxTokensAndTheNextToken) {
  OutputLengths always(1), never(0);
  for (int i = 0; i < 500; ++i) {
    always.Add(3, false);
    never.Add(30, false);
  }
  EXPECT_EQ(always.Predict(0, 77), 77u);
  EXPECT_EQ(never.Predict(7, 77), 8u);
}

// Within a bucket's width (an eighth) of the exact quantile.
TEST(OutputLengths, IsCloseToTheExactQuantile) {
  std::mt19937 random(5);
  std::geometric_distribution<uint32_t> length(1 / 64.0);
  OutputLengths lengths(0.75);
  std::vector<uint32_t> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(1 + length(random));
    lengths.Add(all.back(), false);
  }
  std::sort(all.begin(), all.end());
  for (uint32_t generated : {0u, 16u, 32u, 64u}) {
    const auto first =
        std::upper_bound(all.begin(), all.end(), generated) - all.begin();
    const double exact = all[first + (all.size() - first) * 3 / 4];
    EXPECT_NEAR(lengths.Predict(generated, 4096), exact, exact * 0.2);
  }
}

}  // namespace
}  // namespace baton::decode
