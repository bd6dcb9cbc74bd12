#include "router/admission/service_times.h"

#include <gtest/gtest.h>

#include <utility>

namespace baton::router {
namespace {

using std::chrono::milliseconds;

constexpr MonotonicTime kNow{std::chrono::hours(1)};

void Learn(ServiceTimes* times, int count, Duration prefill, Duration token) {
  for (int i = 0; i < count; ++i) {
    times->Prefilled(100, prefill, kNow);
    times->Decoded(10, 10 * token);
    times->Answered(20, 40);
  }
}

TEST(ServiceTimesTest, SaysNothingBeforeEnoughSamples) {
  ServiceTimes times;
  Learn(&times, 15, milliseconds(100), milliseconds(10));
  EXPECT_FALSE(times.Estimate(100, 40, kNow).has_value());
  Learn(&times, 1, milliseconds(100), milliseconds(10));
  EXPECT_TRUE(times.Estimate(100, 40, kNow).has_value());
}

TEST(ServiceTimesTest, PrefillAndTheUsualPartOfMaxTokens) {
  ServiceTimes times;
  Learn(&times, 30, milliseconds(100), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40, kNow)), 0.1 + 20 * 0.01, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(1000, 40, kNow)), 0.1 + 20 * 0.01, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(50, 40, kNow)), 0.05 + 20 * 0.01, 1e-6)
      << "the shorter view of the prefill";
}

TEST(ServiceTimesTest, AFewOutliersDoNotCount) {
  ServiceTimes times;
  Learn(&times, 58, milliseconds(100), milliseconds(10));
  Learn(&times, 6, std::chrono::seconds(30), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40, kNow)), 0.3, 1e-6);
  Learn(&times, 60, std::chrono::seconds(30), milliseconds(10));
  EXPECT_GT(Seconds(*times.Estimate(100, 40, kNow)), 10);
  Learn(&times, 64, milliseconds(100), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40, kNow)), 0.3, 1e-6)
      << "forgotten";
}

TEST(ServiceTimesTest, OneTokenAnswersAreEnough) {
  ServiceTimes times;
  for (int i = 0; i < 16; ++i) {
    times.Prefilled(10, milliseconds(50), kNow);
    times.Decoded(0, Duration::zero());
    times.Answered(1, 1);
  }
  EXPECT_NEAR(Seconds(*times.Estimate(10, 1, kNow)), 0.05, 1e-6);
}

// 15 % of the requests have long prompts, and theirs are what overload delays.
TEST(ServiceTimesTest, ALongPromptIsNoneOfTheManyShortOnes) {
  ServiceTimes times;
  Learn(&times, 60, milliseconds(50), milliseconds(1));
  for (int i = 0; i < 8; ++i) times.Prefilled(1800, milliseconds(1500), kNow);
  EXPECT_NEAR(Seconds(*times.Estimate(1800, 2, kNow)), 1.501, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(1200, 2, kNow)), 1.001, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(100, 2, kNow)), 0.051, 1e-6);
}

TEST(ServiceTimesTest, ALongerPromptNeverTakesLess) {
  ServiceTimes times;
  Learn(&times, 16, milliseconds(50), milliseconds(1));
  for (const auto& [tokens, took] :
       {std::pair(20, 900), {300, 400}, {1200, 700}, {5000, 100}}) {
    for (int i = 0; i < 8; ++i) {
      times.Prefilled(tokens, milliseconds(took), kNow);
    }
  }
  Duration before{0};
  for (uint64_t tokens = 1; tokens < 20000; ++tokens) {
    const Duration now = *times.Estimate(tokens, 2, kNow);
    ASSERT_GE(now, before) << tokens;
    before = now;
  }
}

TEST(ServiceTimesTest, PrefillsOfLongAgoDoNotCount) {
  ServiceTimes times;
  for (int i = 0; i < 8; ++i) times.Prefilled(1800, milliseconds(9000), kNow);
  Learn(&times, 64, milliseconds(50), milliseconds(1));
  EXPECT_GT(*times.Estimate(1800, 2, kNow), milliseconds(9000));
  EXPECT_LT(
      *times.Estimate(1800, 2, kNow + ServiceTimes::kMaxAge + milliseconds(1)),
      milliseconds(100));
}

}  // namespace
}  // namespace baton::router
