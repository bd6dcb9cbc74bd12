// What a decode worker does about broken compute, late messages and its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "decode_worker/decode_scheduler.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::SizeIs;

class DecodeSchedulerFaults : public testing::Test {
 protected:
  DecodeSchedulerFaults() { h.OpenSession(1); }
  SchedulerHarness h;
};

TEST_F(DecodeSchedulerFaults, NanFailsItsAttemptOnly) {
  h.Serve(1, 1, toy::MakeSpec(10, 30));
  h.Serve(1, 2, toy::MakeSpec(10, 30, 2));
  h.FinishStep();
  h.FinishStep();
  h.TakeEvents(1);
  StepPlan plan = *std::exchange(h.step, std::nullopt);
  ASSERT_EQ(plan.spans.size(), 3u);
  StepResult result = toy::RunToy(plan);
  result.spans[1] = {absl::InternalError("NaN"), {}};
  h.Feed(StepDone{plan.number, result});
  auto events = h.TakeEvents(1);
  EXPECT_EQ(events.back().failed().attempt_id(), 2u);
  EXPECT_FALSE(events.back().failed().retryable());
  EXPECT_EQ(events.back().failed().cause(), v1::FAILURE_CAUSE_WORKER);
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 1u);
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerFaults, ThreeNanInARowMakeItUnhealthyUntilAProbeIsGood) {
  for (uint64_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_TRUE(h.scheduler.healthy());
    h.Serve(1, attempt, toy::MakeSpec(10, 30));
    h.FinishStep();
    h.FailStep(absl::InternalError("infinity in layer 1"));
    if (attempt < 3) continue;
    EXPECT_TRUE(h.AllFree());
  }
  h.TakeEvents(1);
  EXPECT_TRUE(h.scheduler.healthy()) << "each had drawn a token before";
  for (uint64_t attempt = 4; attempt <= 5; ++attempt) {
    h.Serve(1, attempt, toy::MakeSpec(10, 30));
    h.FailStep(absl::InternalError("infinity in layer 1"));
  }
  EXPECT_FALSE(h.scheduler.healthy());
  h.TakeEvents(1);
  h.Reserve(1, 7, toy::MakeSpec(10, 30));
  EXPECT_EQ(h.TakeEvents(1)[0].refused().reason(),
            "unhealthy: 3 attempts in a row could not be computed: infinity in "
            "layer 1");
  h.now += std::chrono::seconds(1);
  h.Feed(Tick{});
  h.FinishStep();
  EXPECT_TRUE(h.scheduler.healthy());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerFaults, DrainFinishesWhatWasAccepted) {
  h.Serve(1, 1, toy::MakeSpec(20, 5));
  h.Feed(DrainStarted{});
  h.Serve(1, 2, toy::MakeSpec(20, 5));
  EXPECT_EQ(h.TakeEvents(1)[0].refused().reason(), "draining");
  h.FinishAllSteps();
  EXPECT_TRUE(h.TakeEvents(1).back().has_done());
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(DecodeSchedulerFaults, ShutDownEndsEverything) {
  h.Serve(1, 1, toy::MakeSpec(20, 5));
  h.Reserve(1, 2, toy::MakeSpec(20, 5));
  h.TakeEvents(1);
  h.Feed(ShutDown{});
  EXPECT_THAT(h.TakeEvents(1), SizeIs(2));
  h.FinishStep();
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerFaults, ALoadSaysWhichAttemptsItKnowsOf) {
  h.Serve(1, 5, toy::MakeSpec(20, 5));
  h.Granted(1);
  EXPECT_EQ(h.loads[SessionId(1)].newest_attempt(), 5u);
  h.Feed(DrainStarted{});
  h.Reserve(1, 6, toy::MakeSpec(20, 5));
  h.Granted(1);
  EXPECT_EQ(h.loads[SessionId(1)].newest_attempt(), 6u) << "refused ones too";
  EXPECT_THAT(h.TakeEvents(1), SizeIs(1));
}

TEST_F(DecodeSchedulerFaults, TheRouterHearsThatBlocksArrive) {
  h.Reserve(1, 5, toy::MakeSpec(40, 3));
  h.TakeEvents(1);
  const LandingId landing = h.OnlyLanding();
  h.Progress(landing, 2);
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].landing_progress().attempt_id(), 5u);
  EXPECT_EQ(events[0].landing_progress().blocks(), 2u);
  h.Release(1, 5);
  h.Progress(landing, 3);
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0)) << "nobody waits for it";
  h.CloseLanding(landing);
  EXPECT_TRUE(h.AllFree());
}

// CASES 1.25: the worker was stopped past its deadlines; what arrives when it
// goes on is too late.
TEST_F(DecodeSchedulerFaults, ALandingVerifiedAfterItsDeadlineIsDiscarded) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30), 1000);
  h.TakeEvents(1);
  h.now += std::chrono::minutes(5);
  h.Verified(h.OnlyLanding(), {9});
  auto events = h.TakeEvents(1);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().failed().code(),
            static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  for (const auto& event : events) EXPECT_FALSE(event.has_tokens());
  EXPECT_FALSE(h.step.has_value());
  EXPECT_TRUE(h.AllFree());
}

// CASES 2.3: in either order the attempt ends once and frees once.
TEST_F(DecodeSchedulerFaults, ReleaseThatCrossesTheEndIsANoOp) {
  h.Serve(1, 5, toy::MakeSpec(20, 2));
  h.FinishAllSteps();
  EXPECT_TRUE(h.TakeEvents(1).back().has_done());
  h.Release(1, 5);
  EXPECT_TRUE(h.TakeEvents(1).empty());
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
  h.Serve(1, 6, toy::MakeSpec(20, 2));
  h.Release(1, 6);
  h.FinishStep();
  EXPECT_TRUE(h.TakeEvents(1).empty());
  EXPECT_TRUE(h.AllFree());
  EXPECT_TRUE(h.scheduler.idle());
}

// CASES 2.7: KV that never comes holds nobody up.
TEST_F(DecodeSchedulerFaults, WhoseKvArrivedDecodesWhateverWasReservedBefore) {
  h.Reserve(1, 5, toy::MakeSpec(20, 3));
  const LandingId first = h.OnlyLanding();
  h.Reserve(1, 6, toy::MakeSpec(20, 3));
  const LandingId second = std::next(h.landings.begin())->first;
  h.Verified(second, {9});
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 6u);
  EXPECT_TRUE(h.landings.contains(first));
}

// CASES 1.46: what does not end in time is replayed elsewhere.
TEST_F(DecodeSchedulerFaults, ShutDownFailsRetryably) {
  h.Serve(1, 5, toy::MakeSpec(20, 30));
  h.FinishStep();
  h.TakeEvents(1);
  h.Feed(DrainStarted{});
  h.FinishStep();
  EXPECT_TRUE(h.TakeEvents(1).back().has_tokens()) << "it goes on";
  h.Feed(ShutDown{});
  const auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_LOAD);
  h.FinishStep();
  EXPECT_TRUE(h.AllFree());
}

}  // namespace
}  // namespace baton::decode
