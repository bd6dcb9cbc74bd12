// Who comes back before whom, and what ends a standstill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::SizeIs;

DecodeOptions Small(uint32_t blocks) {
  DecodeOptions options = SchedulerHarness::Options();
  options.blocks = blocks;
  options.length_quantile = 0;  // the next token is always the last
  return options;
}

v1::SequenceSpec Spec(uint32_t prompt, uint32_t max_tokens,
                      uint32_t priority = 1) {
  v1::SequenceSpec spec = toy::MakeSpec(prompt, max_tokens, 1);
  spec.set_priority(priority);
  return spec;
}

// Attempts with a token among the events.
std::set<uint64_t> Heard(const std::vector<v1::DecodeEvent>& events) {
  std::set<uint64_t> heard;
  for (const v1::DecodeEvent& event : events) {
    for (const auto& token : event.tokens().tokens()) {
      heard.insert(token.attempt_id());
    }
  }
  return heard;
}

// The first pushes out the second while a third lands.
class DecodeReturn : public testing::Test {
 protected:
  void PushOut(uint32_t blocks, const v1::SequenceSpec& third) {
    h.emplace(Small(blocks));
    h->OpenSession(1);
    h->Serve(1, 1, Spec(30, 60));
    h->Serve(1, 2, Spec(30, 60));
    h->FinishStep();
    h->Reserve(1, 3, third);
    while (preemptions() == 0 && h->step.has_value()) h->FinishStep();
    ASSERT_THAT(h->landings, SizeIs(1));
    h->TakeEvents(1);
  }
  uint64_t preemptions() const { return h->scheduler.counters().preemptions; }
  std::optional<SchedulerHarness> h;
};

TEST_F(DecodeReturn, LowerRankDoesNotRunMeanwhile) {
  PushOut(10, Spec(60, 5));  // 4 of 10 blocks
  h->Verified(h->OnlyLanding(), {9});
  h->FinishStep();
  h->TakeEvents(1);
  EXPECT_EQ(preemptions(), 2u) << "the third gives way";
  ASSERT_THAT(h->step->spans, SizeIs(2)) << "the first and, again, the second";
  EXPECT_EQ(h->step->spans[1].first_position, 0u);
  h->FinishStep();
  h->FinishStep();
  EXPECT_EQ(Heard(h->TakeEvents(1)), (std::set<uint64_t>{1}));
  h->FinishStep();
  EXPECT_EQ(Heard(h->TakeEvents(1)), (std::set<uint64_t>{1, 2}));
  h->FinishAllSteps();
  EXPECT_TRUE(h->AllFree());
  EXPECT_EQ(h->scheduler.counters().done, 3u);
}

TEST_F(DecodeReturn, NobodyGivesWayInVain) {
  PushOut(7, Spec(10, 5));  // beside the first there is no room for the second
  h->Verified(h->OnlyLanding(), {9});
  h->FinishStep();
  h->TakeEvents(1);
  h->FinishStep();
  EXPECT_EQ(Heard(h->TakeEvents(1)), (std::set<uint64_t>{1, 3}));
  EXPECT_EQ(preemptions(), 1u);
  h->FinishAllSteps();
  EXPECT_EQ(h->scheduler.counters().done, 3u);
}

// Blocks are taken from lower rank only, so the first of two never loses any,
// however often the second does.
TEST(DecodeReturnPairs, TwoCannotPushEachOtherOut) {
  std::mt19937 random(3);
  uint64_t preemptions = 0;
  for (int round = 0; round < 300; ++round) {
    DecodeOptions options = Small(6 + random() % 3);
    options.max_preemptions = 1'000'000;
    SchedulerHarness h(options);
    h.OpenSession(1);
    const uint32_t priorities[] = {static_cast<uint32_t>(random() % 3),
                                   static_cast<uint32_t>(random() % 3)};
    for (uint64_t i : {1, 2}) {
      h.Serve(1, i,
              Spec(1 + random() % 40, 20 + random() % 35, priorities[i - 1]));
    }
    const uint64_t first = priorities[1] < priorities[0] ? 2 : 1;
    bool runs = false, done = false;
    while (h.step.has_value()) {
      h.FinishStep();
      const auto events = h.TakeEvents(1);
      const bool token = Heard(events).contains(first);
      ASSERT_TRUE(token || !runs || done) << "it missed a step";
      runs = runs || token;
      for (const auto& event : events) {
        ASSERT_FALSE(event.has_failed());
        done = done || event.done().attempt_id() == first;
        if (event.refused().attempt_id() == first) done = true;
      }
    }
    EXPECT_TRUE(h.AllFree());
    // Each was for a block of the first.
    EXPECT_LE(h.scheduler.counters().preemptions, options.blocks);
    preemptions += h.scheduler.counters().preemptions;
  }
  EXPECT_GT(preemptions, 50u);
}

class DecodeStandstill : public testing::Test {
 protected:
  DecodeStandstill() : h(Small(8)) { h.OpenSession(1); }
  // Lets time pass as the driver does.
  void Wait(Duration time) {
    const MonotonicTime end = h.now + time;
    while (h.scheduler.NextDeadline() <= end) {
      h.now = std::max(h.now, h.scheduler.NextDeadline());
      h.Feed(Tick{});
    }
    h.now = end;
  }
  SchedulerHarness h;
};

TEST_F(DecodeStandstill, WhoWaitsForALandingOfHigherRankFailsInTime) {
  h.Serve(1, 1, Spec(30, 60, /*priority=*/2));
  h.FinishStep();
  h.Reserve(1, 2, Spec(80, 3, /*priority=*/0));
  h.FinishAllSteps();
  EXPECT_EQ(h.scheduler.waiting(), 1u);
  h.TakeEvents(1);
  Wait(std::chrono::milliseconds(1900));
  EXPECT_TRUE(h.TakeEvents(1).empty());
  Wait(std::chrono::milliseconds(200));
  const auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].failed().attempt_id(), 1u);
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_LOAD);
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().message(), "blocks: none came free for 2 s");
  EXPECT_EQ(h.ledger().free, 3u);
  h.Verified(h.OnlyLanding(), {9});
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 2u);
}

TEST_F(DecodeStandstill, TheClockStartsAnewWithEveryStep) {
  h.Serve(1, 1, Spec(30, 60, /*priority=*/2));
  h.FinishStep();
  h.Reserve(1, 2, Spec(80, 3, /*priority=*/0));
  h.FinishAllSteps();
  Wait(std::chrono::milliseconds(1900));
  h.Fail(h.OnlyLanding());
  h.CloseLanding(h.OnlyLanding());
  h.Reserve(1, 3, Spec(60, 3, /*priority=*/0));
  h.FinishAllSteps();
  EXPECT_EQ(h.scheduler.waiting(), 1u);
  Wait(std::chrono::milliseconds(1900));
  EXPECT_EQ(h.scheduler.counters().given_up, 0u);
}

TEST(DecodeReturnAlone, NothingElseRunsSoALandingMakesRoom) {
  DecodeOptions options = Small(10);
  options.max_preemptions = 1;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, toy::MakeSpec(30, 50, 2));  // 3 blocks, then 2 more at once
  h.Serve(1, 2, Spec(30, 90));              // once preempted it wants 8
  h.FinishStep();
  h.FinishStep();
  h.Reserve(1, 3, Spec(60, 5));
  ASSERT_THAT(h.landings, SizeIs(1));
  for (const auto& event : h.TakeEvents(1)) {
    ASSERT_FALSE(event.has_refused() || event.has_failed());
  }
  while (h.scheduler.counters().preemptions == 0 && h.step.has_value()) {
    h.FinishStep();
  }
  EXPECT_EQ(h.scheduler.counters().landings_given_up, 0u);
  h.Release(1, 1);
  h.FinishStep();
  EXPECT_FALSE(h.step.has_value());
  EXPECT_EQ(h.scheduler.waiting(), 1u);
  EXPECT_EQ(h.scheduler.counters().landings_given_up, 1u);
  h.CloseLanding(h.OnlyLanding());
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 2u);
}

// Its blocks may be written until the transfer is over: nothing comes free.
TEST_F(DecodeStandstill, QuarantineIsNotWaitedForWithoutEnd) {
  h.Serve(1, 1, Spec(30, 60));
  h.FinishStep();
  h.Reserve(1, 2, Spec(80, 3));
  h.FinishAllSteps();
  EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 5u);
  h.TakeEvents(1);
  Wait(std::chrono::milliseconds(2100));
  EXPECT_EQ(h.TakeEvents(1).back().failed().attempt_id(), 1u);
  EXPECT_EQ(h.scheduler.counters().given_up, 1u);
}

int Failures(const std::vector<v1::DecodeEvent>& events) {
  int failures = 0;
  for (const v1::DecodeEvent& event : events) failures += event.has_failed();
  return failures;
}

TEST(DecodeStandstills, NobodyFailsWhoseFailureMakesNoRoom) {
  SchedulerHarness h(Small(10));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 120));
  h.Serve(1, 2, Spec(30, 60));
  h.FinishStep();
  h.Reserve(1, 3, Spec(60, 5));
  h.FinishAllSteps();
  ASSERT_EQ(h.scheduler.waiting(), 2u);
  h.TakeEvents(1);
  h.now += std::chrono::milliseconds(2100);
  h.Feed(Tick{});
  const auto events = h.TakeEvents(1);
  ASSERT_EQ(Failures(events), 1);
  EXPECT_EQ(events[0].failed().attempt_id(), 1u) << "the second holds nothing";
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 2u);
}

TEST(DecodeStandstills, ThoseThatHoldNothingFailOneAtATime) {
  DecodeOptions options = Small(11);
  options.max_preemptions = 1;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 90));
  h.Serve(1, 2, Spec(30, 90));
  h.Serve(1, 3, Spec(14, 100, /*priority=*/0));
  h.Reserve(1, 4, Spec(80, 3, /*priority=*/0));
  while (h.scheduler.counters().preemptions < 2 && h.step.has_value()) {
    h.FinishStep();
  }
  h.Release(1, 3);
  h.FinishAllSteps();
  ASSERT_EQ(h.scheduler.waiting(), 2u);
  ASSERT_EQ(h.ledger()[BlockUse::kRunning], 0u);
  h.TakeEvents(1);
  for (uint64_t last : {2, 1}) {
    h.now += std::chrono::milliseconds(2100);
    h.Feed(Tick{});
    const auto events = h.TakeEvents(1);
    ASSERT_EQ(Failures(events), 1);
    EXPECT_EQ(events[0].failed().attempt_id(), last);
  }
}

// Neither what runs nor what lands is enough alone.
TEST(DecodeReturnAlone, LowerRankThatRunsAndThatLandsGivesWayTogether) {
  DecodeOptions options = Small(20);
  options.max_preemptions = 1;
  options.limits.max_context_tokens = 400;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(47, 100, /*priority=*/0));
  h.Serve(1, 2, Spec(97, 200, /*priority=*/0));  // wants 19 once preempted
  h.Reserve(1, 3, Spec(112, 5, /*priority=*/1));
  h.Reserve(1, 4, Spec(17, 250, /*priority=*/2));
  ASSERT_THAT(h.landings, SizeIs(2));
  const LandingId third = h.landings.begin()->first;
  const LandingId fourth = std::next(h.landings.begin())->first;
  while (h.scheduler.counters().preemptions == 0 && h.step.has_value())
    h.FinishStep();
  EXPECT_EQ(h.scheduler.counters().landings_given_up, 0u)
      << "beside the first there is no room anyway";
  h.Verified(fourth, {9});
  h.FinishStep();
  h.Release(1, 1);
  h.FinishStep();
  EXPECT_TRUE(h.landings.at(third).cancelled);
  ASSERT_TRUE(h.step.has_value()) << "the fourth goes on as long as it can";
  EXPECT_EQ(h.scheduler.counters().preemptions, 1u);
  h.CloseLanding(third);
  h.FinishStep();
  EXPECT_EQ(h.scheduler.counters().preemptions, 2u);
  h.TakeEvents(1);
  h.FinishStep();
  ASSERT_TRUE(h.step.has_value());
  EXPECT_TRUE(Heard(h.TakeEvents(1)).empty()) << "the second is computed again";
  h.FinishAllSteps();
  const auto events = h.TakeEvents(1);
  EXPECT_EQ(Failures(events), 0);
  EXPECT_EQ(h.scheduler.counters().done, 2u);
  EXPECT_TRUE(h.AllFree());
}

// No step follows that could tell.
TEST(DecodeSpare, IsTrueWhileOnlyALandingRemains) {
  SchedulerHarness h;
  h.OpenSession(1);
  h.Reserve(1, 1, Spec(16, 4));
  h.Serve(1, 2, Spec(200, 200));
  h.Reserve(1, 3, Spec(200, 200));
  h.Release(1, 2);
  h.FinishAllSteps();
  h.Release(1, 3);
  h.CloseLanding(std::next(h.landings.begin())->first);
  EXPECT_EQ(h.ledger().free, 63u);
  EXPECT_LE(h.scheduler.predicted_peak(), 2u);
  EXPECT_GE(h.scheduler.Load().spare_blocks(), 60u);
}

}  // namespace
}  // namespace baton::decode
