#include "router/admission/service_times.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;

void Learn(ServiceTimes* times, int count, Duration prefill, Duration token) {
  for (int i = 0; i < count; ++i) {
    times->Prefilled(100, prefill);
    times->Decoded(10, 10 * token);
    times->Answered(20, 40);
  }
}

TEST(ServiceTimesTest, SaysNothingBeforeEnoughSamples) {
  ServiceTimes times;
  Learn(&times, 15, milliseconds(100), milliseconds(10));
  EXPECT_FALSE(times.Estimate(100, 40).has_value());
  Learn(&times, 1, milliseconds(100), milliseconds(10));
  EXPECT_TRUE(times.Estimate(100, 40).has_value());
}

TEST(ServiceTimesTest, PrefillAndTheUsualPartOfMaxTokens) {
  ServiceTimes times;
  Learn(&times, 30, milliseconds(100), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40)), 0.1 + 20 * 0.01, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(1000, 40)), 0.1 + 20 * 0.01, 1e-6);
  EXPECT_NEAR(Seconds(*times.Estimate(50, 40)), 0.05 + 20 * 0.01, 1e-6)
      << "the shorter view of the prefill";
}

TEST(ServiceTimesTest, AFewOutliersDoNotCount) {
  ServiceTimes times;
  Learn(&times, 58, milliseconds(100), milliseconds(10));
  Learn(&times, 6, std::chrono::seconds(30), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40)), 0.3, 1e-6);
  Learn(&times, 60, std::chrono::seconds(30), milliseconds(10));
  EXPECT_GT(Seconds(*times.Estimate(100, 40)), 10);
  Learn(&times, 64, milliseconds(100), milliseconds(10));
  EXPECT_NEAR(Seconds(*times.Estimate(100, 40)), 0.3, 1e-6) << "forgotten";
}

TEST(ServiceTimesTest, OneTokenAnswersAreEnough) {
  ServiceTimes times;
  for (int i = 0; i < 16; ++i) {
    times.Prefilled(10, milliseconds(50));
    times.Decoded(0, Duration::zero());
    times.Answered(1, 1);
  }
  EXPECT_NEAR(Seconds(*times.Estimate(10, 1)), 0.05, 1e-6);
}

}  // namespace
}  // namespace baton::router
