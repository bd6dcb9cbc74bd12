// Attempts that end while a holder is asked for their blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

DecodeOptions Preempting() {
  DecodeOptions options = SchedulerHarness::Options();
  options.preempted_return = PreemptedReturn::kPush;
  options.forced_preemptions = 1;
  return options;
}

// How an attempt may end while a holder is asked, and from where on.
using Ending = std::function<void(SchedulerHarness&)>;
struct EndingCase {
  const char* name;
  Ending end;
  int failures;
};
class DecodeFetchEnds : public testing::TestWithParam<EndingCase> {
 protected:
  static void Start(SchedulerHarness& h) {
    h.auto_open = false;
    h.OpenSession(1);
    h.Reserve(1, 1, toy::MakeSpec(40, 20), /*deadline_ms=*/1000);
    h.Open();
    h.Verified(h.OnlyLanding(), {9});
    h.FinishStep();
    ASSERT_THAT(h.opening, SizeIs(1));
    h.TakeEvents(1);
  }
  // Only what the transfer may touch is left.
  static void End(SchedulerHarness& h) {
    GetParam().end(h);
    EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 2u);
    EXPECT_EQ(h.ledger().free, 62u);
    EXPECT_FALSE(h.scheduler.idle());
    int failures = 0;
    for (const auto& event : h.TakeEvents(1)) failures += event.has_failed();
    EXPECT_EQ(failures, GetParam().failures);
    EXPECT_EQ(h.scheduler.fetching(), 0u);
  }
  static void ExpectEnd(SchedulerHarness& h) {
    EXPECT_TRUE(h.scheduler.idle());
    EXPECT_TRUE(h.AllFree());
    EXPECT_THAT(h.TakeEvents(1), IsEmpty());
  }
};

TEST_P(DecodeFetchEnds, WhileTheLandingIsOpened) {
  SchedulerHarness h(Preempting());
  Start(h);
  End(h);
  h.Open();
  EXPECT_TRUE(h.landings.at(h.OnlyLanding()).cancelled);
  h.CloseLanding(h.OnlyLanding());
  ExpectEnd(h);
}

TEST_P(DecodeFetchEnds, AndTheLandingCannotBeOpened) {
  SchedulerHarness h(Preempting());
  Start(h);
  End(h);
  h.Open(absl::ResourceExhaustedError("landings"));
  ExpectEnd(h);
}

TEST_P(DecodeFetchEnds, WhileBlocksCome) {
  SchedulerHarness h(Preempting());
  Start(h);
  h.Open();
  h.TakeEvents(1);
  End(h);
  EXPECT_TRUE(h.landings.at(h.OnlyLanding()).cancelled);
  h.CloseLanding(h.OnlyLanding());
  ExpectEnd(h);
}

TEST_P(DecodeFetchEnds, BeforeWhatHasComeIsKnown) {
  SchedulerHarness h(Preempting());
  Start(h);
  h.Open();
  h.TakeEvents(1);
  End(h);
  h.Pushed(h.OnlyLanding());
  ExpectEnd(h);
}

TEST_P(DecodeFetchEnds, AfterARefusalOrAFailure) {
  for (const bool refused : {true, false}) {
    SchedulerHarness h(Preempting());
    Start(h);
    h.Open();
    h.TakeEvents(1);
    if (refused) {
      h.RefusePush(1, 1, h.OnlyLanding());
    } else {
      h.Fail(h.OnlyLanding());
    }
    End(h);
    h.CloseLanding(h.OnlyLanding());
    ExpectEnd(h);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeFetchEnds,
    testing::Values(
        EndingCase{"Released", [](SchedulerHarness& h) { h.Release(1, 1); }, 0},
        EndingCase{
            "SessionLost",
            [](SchedulerHarness& h) { h.Feed(SessionLost{SessionId(1)}); }, 0},
        EndingCase{"Deadline",
                   [](SchedulerHarness& h) {
                     h.now += std::chrono::seconds(2);
                     h.Feed(Tick{});
                   },
                   1},
        EndingCase{"ShutDown", [](SchedulerHarness& h) { h.Feed(ShutDown{}); },
                   1}),
    [](const auto& ending) { return ending.param.name; });

}  // namespace
}  // namespace baton::decode
