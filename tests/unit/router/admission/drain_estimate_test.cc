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

TEST_F(DrainEstimateTest, SaysNothingBeforeItHasSeenAFew) {
  estimate_.Waiting(true, now_);
  for (int i = 0; i < 7; ++i) {
    now_ += milliseconds(100);
    estimate_.Served(10, now_);
  }
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
  now_ += milliseconds(100);
  estimate_.Served(10, now_);
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 1);
}

TEST_F(DrainEstimateTest, FewLongPromptsTakeTheirTime) {
  estimate_.Waiting(true, now_);
  now_ += milliseconds(3900);
  estimate_.Served(8000, now_);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
  for (int i = 0; i < 3; ++i) {
    now_ += seconds(4);
    EXPECT_GT(*estimate_.Rate(now_), 900) << "computes, does not stand still";
    estimate_.Served(8000, now_);
  }
  EXPECT_NEAR(*estimate_.Rate(now_), 2000, 50);
}

TEST_F(DrainEstimateTest, ShortPromptsThatPassALongOneAreNotAllThatIsDone) {
  estimate_.Waiting(true, now_);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      now_ += milliseconds(250);
      estimate_.Served(40, now_);
    }
    if (round > 0) {
      EXPECT_GT(*estimate_.Rate(now_), 250) << "160 is the short ones'";
    }
    estimate_.Served(1700, now_);
  }
  EXPECT_LT(*estimate_.Rate(now_), 700) << "500 on average";
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

TEST_F(DrainEstimateTest, AChangeIsKnownWithinSeconds) {
  estimate_.Waiting(true, now_);
  Serve(100, 16);
  Serve(50, 1);
  EXPECT_LT(*estimate_.Rate(now_), 85);
  Serve(50, 2);
  EXPECT_NEAR(*estimate_.Rate(now_), 50, 5);
  Serve(300, 3);
  EXPECT_NEAR(*estimate_.Rate(now_), 300, 30);
}

TEST_F(DrainEstimateTest, AStandstillLowersItAtOnce) {
  estimate_.Waiting(true, now_);
  Serve(100, 4);
  now_ += seconds(6);
  EXPECT_LT(*estimate_.Rate(now_), 40);
}

TEST_F(DrainEstimateTest, TimeInWhichTheRouterStoodStillDoesNotCount) {
  estimate_.Waiting(true, now_);
  Serve(100, 4);
  now_ += seconds(30);
  estimate_.StoodStill(now_);
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 10);
  now_ += seconds(6);
  EXPECT_LT(*estimate_.Rate(now_), 40) << "what follows does";
}

// The prompts of the meantime are told all at once.
TEST_F(DrainEstimateTest, WhatIsHeardOfAStandstillDoesNotCount) {
  estimate_.Waiting(true, now_);
  Serve(100, 4);
  now_ += seconds(30);
  estimate_.StoodStill(now_ + milliseconds(1500));
  for (int i = 0; i < 300; ++i) estimate_.Served(10, now_);
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 10);
  estimate_.Waiting(false, now_);
  estimate_.Waiting(true, now_);
  for (int i = 0; i < 14; ++i) {
    now_ += milliseconds(100);
    estimate_.Served(10, now_);
  }
  EXPECT_NEAR(*estimate_.Rate(now_), 100, 10);
  now_ += milliseconds(100);
  Serve(50, 3);
  EXPECT_NEAR(*estimate_.Rate(now_), 50, 5) << "what follows does";
}

TEST_F(DrainEstimateTest, StandstillAndOldTimesSayNothing) {
  estimate_.Waiting(true, now_);
  now_ += seconds(10);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
  Serve(100, 4);
  EXPECT_TRUE(estimate_.Rate(now_).has_value());
  estimate_.Waiting(false, now_);
  now_ += seconds(61);
  EXPECT_FALSE(estimate_.Rate(now_).has_value());
}

}  // namespace
}  // namespace baton::router
