#include "router/admission/drain_estimate.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DrainEstimateTest : public ::testing::Test {
 protected:
  // `rate` tokens per second for `time`.
  void Serve(uint64_t rate, int time) {
    for (int i = 0; i < time * 10; ++i) {
      now_ += milliseconds(100);
      estimate_.Served(rate / 10, now_);
    }
  }
  MonotonicTime now_ = MonotonicTime(seconds(50));
  DrainEstimate estimate_;
};

TEST_F(DrainEstimateTest, SaysNothingBeforeTwoWindows) {
  estimate_.Waiting(true, now_);
  Serve(100, 3);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
  Serve(100, 1);
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 5);
}

TEST_F(DrainEstimateTest, CountsOnlyTimeInWhichWorkWaits) {
  estimate_.Waiting(true, now_);
  Serve(100, 2);
  estimate_.Waiting(false, now_);
  Serve(5, 20);
  estimate_.Waiting(true, now_);
  Serve(100, 2);
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 5);
}

TEST_F(DrainEstimateTest, MeanAndFastest) {
  estimate_.Waiting(true, now_);
  Serve(100, 4);
  Serve(300, 4);
  EXPECT_NEAR(*estimate_.Rate(now_), 200, 10);
  EXPECT_NEAR(*estimate_.FastestRate(now_), 300, 10);
  Serve(50, 18);
  EXPECT_NEAR(*estimate_.FastestRate(now_), 50, 5) << "old windows are gone";
}

TEST_F(DrainEstimateTest, StandstillAndOldWindowsSayNothing) {
  estimate_.Waiting(true, now_);
  Serve(0, 10);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
  EXPECT_FALSE(estimate_.FastestRate(now_).has_value());
  Serve(100, 4);
  EXPECT_TRUE(estimate_.Rate(now_).has_value());
  estimate_.Waiting(false, now_);
  now_ += seconds(61);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
}

}  // namespace
}  // namespace baton::router
