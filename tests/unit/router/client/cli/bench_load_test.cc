#include "router/client/cli/bench_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace baton::cli {
namespace {

using testing::Each;
using testing::Ge;
using testing::Lt;

TEST(PoissonArrivalsTest, AreAFunctionOfTheSeed) {
  EXPECT_EQ(PoissonArrivals(10, 50, 1), PoissonArrivals(10, 50, 1));
  EXPECT_NE(PoissonArrivals(10, 50, 1), PoissonArrivals(10, 50, 2));
}

TEST(PoissonArrivalsTest, GapsAreExponentialWithTheGivenMean) {
  constexpr size_t kCount = 100'000;
  const auto arrivals = PoissonArrivals(50, kCount + 1, 7);
  ASSERT_EQ(arrivals.size(), kCount + 1);
  EXPECT_EQ(arrivals[0], Duration::zero());
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  double squares = 0;
  size_t over_mean = 0;
  const double mean = Seconds(arrivals.back()) / kCount;
  for (size_t i = 0; i < kCount; ++i) {
    const double gap = Seconds(arrivals[i + 1] - arrivals[i]);
    squares += (gap - mean) * (gap - mean);
    over_mean += gap > mean ? 1 : 0;
  }
  EXPECT_NEAR(mean, 1.0 / 50, 0.01 / 50);
  EXPECT_NEAR(std::sqrt(squares / kCount), mean, 0.02 * mean);
  EXPECT_NEAR(static_cast<double>(over_mean) / kCount, std::exp(-1), 0.01);
}

TEST(GeometricLengthTest, HasItsMeanAndItsTail) {
  constexpr size_t kCount = 100'000;
  double sum = 0;
  size_t over_mean = 0, ones = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t length = GeometricLength(64, 1 << 20, 5, i);
    ASSERT_GE(length, 1u);
    sum += static_cast<double>(length);
    over_mean += length > 64 ? 1 : 0;
    ones += length == 1 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 64, 1);
  EXPECT_NEAR(static_cast<double>(over_mean) / kCount, std::exp(-1), 0.01);
  EXPECT_NEAR(static_cast<double>(ones) / kCount, 1.0 / 64, 0.003);
}

TEST(GeometricLengthTest, IsCutOffAndRepeats) {
  for (size_t i = 0; i < 1000; ++i) {
    const size_t length = GeometricLength(64, 100, 5, i);
    EXPECT_LE(length, 100u);
    EXPECT_EQ(length, GeometricLength(64, 100, 5, i));
  }
  EXPECT_EQ(GeometricLength(1, 100, 5, 3), 1u);
  EXPECT_NE(GeometricLength(64, 512, 5, 3), GeometricLength(64, 512, 6, 3));
}

TEST(RandomPromptTest, StaysInTheVocabularyAndOffReservedIds) {
  const auto prompt = RandomPrompt(5000, 49152, 3, 0);
  EXPECT_EQ(prompt.size(), 5000u);
  EXPECT_THAT(prompt, Each(Ge(256u)));
  EXPECT_THAT(prompt, Each(Lt(49152u)));
  EXPECT_THAT(RandomPrompt(5000, 20, 3, 0), Each(Lt(20u)));
  EXPECT_THAT(RandomPrompt(10, 1, 3, 0), Each(0u));
}

TEST(RandomPromptTest, DiffersByIndexAndSeedFromTheFirstToken) {
  const auto base = RandomPrompt(16, 49152, 3, 0);
  EXPECT_EQ(base, RandomPrompt(16, 49152, 3, 0));
  EXPECT_NE(base[0], RandomPrompt(16, 49152, 3, 1)[0]);
  EXPECT_NE(base[0], RandomPrompt(16, 49152, 4, 0)[0]);
  EXPECT_NE(base[0], RandomPrompt(16, 49152, uint64_t{3} << 32, 0)[0]);
}

}  // namespace
}  // namespace baton::cli
