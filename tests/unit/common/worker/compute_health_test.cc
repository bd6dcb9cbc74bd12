#include "common/worker/compute_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const absl::Status kNan = absl::InternalError("NaN");

class ComputeHealthTest : public testing::Test {
 protected:
  bool healthy() const { return health_.WhyUnhealthy().empty(); }
  void Break(int times) {
    for (int i = 0; i < times; ++i) health_.Judge(0, 1, kNan, now_);
  }
  ComputeHealth health_{{.step_timeout = seconds(10)}};
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(ComputeHealthTest, AGoodAttemptForgivesTwoBrokenOnes) {
  Break(2);
  health_.Judge(1, 1, kNan, now_);
  Break(2);
  EXPECT_TRUE(healthy());
  EXPECT_EQ(health_.NextDeadline(), kNever);
  Break(1);
  EXPECT_EQ(health_.WhyUnhealthy(),
            "3 attempts in a row could not be computed: NaN");
}

TEST_F(ComputeHealthTest, OneStepMayBreakManyAttempts) {
  health_.Judge(0, 5, kNan, now_);
  EXPECT_FALSE(healthy());
}

TEST_F(ComputeHealthTest, OnlyAProbeHeals) {
  Break(3);
  health_.Judge(4, 0, absl::OkStatus(), now_);
  EXPECT_FALSE(healthy());
  EXPECT_FALSE(health_.ProbeDue(now_));
  EXPECT_EQ(health_.NextDeadline(), now_ + seconds(1));
  now_ += seconds(1);
  EXPECT_TRUE(health_.ProbeDue(now_));
  health_.ProbeEnded(absl::OkStatus(), now_);
  EXPECT_TRUE(healthy());
}

TEST_F(ComputeHealthTest, ProbesBackOffAndNeverWhileAStepRuns) {
  Break(3);
  const int gaps[] = {1, 2, 4, 8, 16, 32, 60, 60};
  for (const int gap : gaps) {
    now_ += seconds(gap) - milliseconds(1);
    EXPECT_FALSE(health_.ProbeDue(now_)) << gap;
    now_ += milliseconds(1);
    EXPECT_TRUE(health_.ProbeDue(now_)) << gap;
    health_.StepStarted(now_);
    EXPECT_FALSE(health_.ProbeDue(now_));
    health_.StepEnded();
    health_.ProbeEnded(kNan, now_);
  }
}

TEST_F(ComputeHealthTest, StalledUntilTheStepEnds) {
  health_.StepStarted(now_);
  EXPECT_EQ(health_.NextDeadline(), now_ + seconds(10));
  health_.Update(now_ + seconds(9));
  EXPECT_TRUE(healthy());
  health_.Update(now_ + seconds(10));
  EXPECT_TRUE(health_.stalled());
  EXPECT_EQ(health_.NextDeadline(), kNever) << "told once";
  EXPECT_EQ(health_.WhyUnhealthy(),
            "a step has been running for more than 10 s");
  health_.StepEnded();
  EXPECT_TRUE(healthy());
}

TEST_F(ComputeHealthTest, TheReasonIsBounded) {
  const absl::Status longest = absl::InternalError(std::string(10'000, 'x'));
  health_.Judge(0, 3, longest, now_);
  EXPECT_LT(health_.WhyUnhealthy().size(), 256u);
}

}  // namespace
}  // namespace baton
