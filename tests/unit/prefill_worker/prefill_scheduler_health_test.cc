// What a prefill worker does when its compute is broken or stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SizeIs;

class PrefillHealthTest : public testing::Test {
 protected:
  PrefillHealthTest() { h.OpenSession(1); }
  SchedulerHarness h;
};

TEST_F(PrefillHealthTest, NanFailsItsPromptOnly) {
  h.Start(1, 1, toy::MakeSpec(10, 10));
  h.FinishStep();
  h.Start(1, 2, toy::MakeSpec(10, 10));
  h.Start(1, 3, toy::MakeSpec(10, 10));
  h.FinishStep();
  h.TakeEvents(1);
  StepPlan plan = *std::exchange(h.step, std::nullopt);
  StepResult result = toy::RunToy(plan);
  result.spans[0] = {absl::InternalError("NaN in layer 3"), {}};
  h.Feed(StepDone{plan.number, result});
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_FALSE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_WORKER);
  EXPECT_EQ(events[0].failed().code(),
            static_cast<int>(absl::StatusCode::kInternal));
}

TEST_F(PrefillHealthTest, ThreeNanInARowMakeItUnhealthyUntilAProbeIsGood) {
  for (uint64_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_TRUE(h.scheduler.healthy());
    h.Start(1, attempt, toy::MakeSpec(10, 10));
    h.FailStep(absl::InternalError("NaN in layer 3"));
    h.CloseTransfer(h.transfers.begin()->first);
  }
  EXPECT_EQ(h.scheduler.Load().unhealthy(),
            "3 attempts in a row could not be computed: NaN in layer 3");
  EXPECT_TRUE(h.AllFree()) << "nothing is cached";
  for (const auto& event : h.TakeEvents(1)) {
    EXPECT_EQ(event.failed().code(),
              static_cast<int>(absl::StatusCode::kInternal));
  }
  h.Start(1, 4, toy::MakeSpec(10, 10));
  EXPECT_TRUE(h.TakeEvents(1)[0].failed().retryable());

  ASSERT_FALSE(h.step.has_value());
  h.now = h.scheduler.NextDeadline();
  h.Feed(Tick{});
  while (!h.step.has_value()) {
    h.now += milliseconds(100);
    h.Feed(Tick{});
  }
  h.FailStep(absl::InternalError("NaN in layer 3"));
  EXPECT_FALSE(h.scheduler.healthy());
  EXPECT_FALSE(h.step.has_value()) << "the next probe waits";
  h.now += seconds(2);
  h.Feed(Tick{});
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 1u);
  h.FinishStep();
  EXPECT_TRUE(h.scheduler.healthy());
  EXPECT_TRUE(h.AllFree());
  h.Start(1, 5, toy::MakeSpec(10, 10));
  h.FinishStep();
  EXPECT_TRUE(h.TakeEvents(1)[0].has_first_tokens());
}

// CASES 2.19: what is due happens although nothing arrives.
TEST_F(PrefillHealthTest, AStepThatDoesNotEndIsToldWhenIdle) {
  h.Start(1, 1, toy::MakeSpec(10, 10));
  h.now += seconds(59);
  h.Feed(Tick{});
  EXPECT_TRUE(h.scheduler.healthy());
  EXPECT_LE(h.scheduler.NextDeadline(), h.now + seconds(1));
  h.now += seconds(1);
  h.Feed(Tick{});
  EXPECT_TRUE(h.scheduler.health().stalled());
  EXPECT_EQ(h.loads[SessionId(1)].unhealthy(),
            "a step has been running for more than 60 s");
  h.FinishStep();
  EXPECT_TRUE(h.scheduler.healthy());
}

}  // namespace
}  // namespace baton::prefill
