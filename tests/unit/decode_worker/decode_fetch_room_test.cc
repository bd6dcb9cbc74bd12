// Blocks on their way back from a holder when others need room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::SizeIs;

DecodeOptions Small(uint32_t blocks) {
  DecodeOptions options = SchedulerHarness::Options();
  options.preempted_return = PreemptedReturn::kPush;
  options.blocks = blocks;
  options.length_quantile = 0;  // the next token is always the last
  options.forced_preemptions = 1;
  return options;
}

class DecodeFetchRoom : public testing::Test {
 protected:
  void Open(DecodeOptions options) {
    h.emplace(std::move(options));
    h->OpenSession(1);
  }
  void HandOver(uint64_t attempt, const v1::SequenceSpec& spec) {
    h->Reserve(1, attempt, spec);
    ASSERT_THAT(h->landings, SizeIs(1));
    h->Verified(h->OnlyLanding(), {9});
  }
  void FinishStep() {
    h->FinishStep();
    for (const v1::DecodeEvent& event : h->TakeEvents(1)) {
      for (const v1::TokenDelta& token : event.tokens().tokens()) {
        ++tokens[token.attempt_id()];
      }
      ASSERT_FALSE(event.has_refused());
      failures += event.has_failed();
    }
  }
  void FinishAllSteps() {
    while (h->step.has_value()) FinishStep();
  }
  // Lets time pass as the driver does.
  void Wait(Duration time) {
    const MonotonicTime end = h->now + time;
    while (h->scheduler.NextDeadline() <= end) {
      h->now = std::max(h->now, h->scheduler.NextDeadline());
      h->Feed(Tick{});
    }
    h->now = end;
    for (const v1::DecodeEvent& event : h->TakeEvents(1)) {
      failures += event.has_failed();
    }
  }
  const DecodeCounters& counters() const { return h->scheduler.counters(); }
  uint32_t quarantine() const { return h->ledger()[BlockUse::kQuarantine]; }

  // The first, which ranks first, runs while a holder is asked for the blocks
  // of the second, and takes the second's own one.
  void PushOutWhileFetching(uint32_t max_tokens = 40) {
    Open(Small(6));
    h->Serve(1, 1, toy::MakeSpec(20, max_tokens));
    HandOver(2, toy::MakeSpec(32, 10));
    while (h->scheduler.fetching() == 0 && h->step.has_value()) FinishStep();
    ASSERT_EQ(counters().preemptions, 2u) << "both, as asked for";
    while (counters().preemptions == 2 && h->step.has_value()) FinishStep();
    ASSERT_EQ(counters().preemptions, 3u);
    EXPECT_EQ(h->scheduler.fetching(), 0u);
    EXPECT_EQ(h->scheduler.waiting(), 1u);
    EXPECT_EQ(quarantine(), 2u);
    EXPECT_TRUE(h->landings.at(h->OnlyLanding()).cancelled);
    ASSERT_TRUE(h->step.has_value()) << "the first misses no step";
  }

  std::optional<SchedulerHarness> h;
  std::map<uint64_t, int> tokens;
  int failures = 0;
};

TEST_F(DecodeFetchRoom, HigherRankTakesTheBlocks) {
  PushOutWhileFetching();
  h->CloseLanding(h->OnlyLanding());
  EXPECT_EQ(quarantine(), 0u);
  FinishAllSteps();
  EXPECT_EQ(tokens.at(1), 40);
  ASSERT_EQ(h->scheduler.fetching(), 1u) << "once there is room it asks again";
  h->Pushed(h->OnlyLanding());
  FinishAllSteps();
  EXPECT_EQ(tokens.at(2), 9);
  EXPECT_EQ(counters().pushed_returns, 1u);
  EXPECT_EQ(counters().failed_fetches, 0u);
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(h->AllFree());
}

TEST_F(DecodeFetchRoom, WhatCameTooLateIsGivenBack) {
  PushOutWhileFetching();
  h->Pushed(h->OnlyLanding());
  EXPECT_EQ(quarantine(), 0u);
  EXPECT_EQ(counters().pushed_returns, 0u);
  FinishAllSteps();
  h->Pushed(h->OnlyLanding());
  FinishAllSteps();
  EXPECT_EQ(tokens.at(2), 9);
  EXPECT_TRUE(h->AllFree());
}

// Other blocks are free before those of the old transfer are.
TEST_F(DecodeFetchRoom, ComesBackBeforeTheOldTransferIsOver) {
  PushOutWhileFetching();
  const LandingId old = h->OnlyLanding();
  while (tokens[1] < 40 && h->step.has_value()) FinishStep();
  ASSERT_TRUE(h->step.has_value());
  ASSERT_THAT(h->step->spans, SizeIs(1));
  EXPECT_EQ(h->step->spans[0].first_position, 0u) << "computed, not asked for";
  EXPECT_EQ(quarantine(), 2u);
  FinishAllSteps();
  EXPECT_EQ(tokens.at(2), 9);
  EXPECT_EQ(h->ledger().free, 4u);
  h->CloseLanding(old);
  EXPECT_TRUE(h->AllFree());
  EXPECT_TRUE(h->scheduler.idle());
}

TEST_F(DecodeFetchRoom, ItsEndWaitsForTheOldTransfer) {
  PushOutWhileFetching();
  h->Release(1, 2);
  FinishAllSteps();
  EXPECT_FALSE(h->scheduler.idle());
  EXPECT_EQ(h->ledger().free, 4u);
  h->CloseLanding(h->OnlyLanding());
  EXPECT_TRUE(h->scheduler.idle());
  EXPECT_TRUE(h->AllFree());
}

// The first needs a block more, and the second holds nothing but what its old
// transfer may still write.
TEST_F(DecodeFetchRoom, WhoseFailureMakesNoRoomIsSpared) {
  PushOutWhileFetching(/*max_tokens=*/60);
  FinishAllSteps();
  ASSERT_EQ(h->scheduler.waiting(), 2u);
  ASSERT_EQ(quarantine(), 2u);
  Wait(std::chrono::milliseconds(2100));
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(counters().given_up, 1u);
  ASSERT_TRUE(h->step.has_value()) << "the second goes on";
  FinishAllSteps();
  EXPECT_EQ(tokens.at(2), 9);
  h->CloseLanding(h->OnlyLanding());
  EXPECT_EQ(failures, 1);
  EXPECT_TRUE(h->AllFree());
}

// What a refused push leaves in quarantine goes on in the answer that asked for
// it: nobody else can wait for it.
TEST_F(DecodeFetchRoom, WhatIsComputedIntoAgainDoesNotComeFree) {
  Open(Small(9));
  HandOver(1, toy::MakeSpec(32, 20));
  h->Serve(1, 2, toy::MakeSpec(20, 60));
  h->Reserve(1, 3, toy::MakeSpec(32, 10));
  while (h->scheduler.fetching() == 0 && h->step.has_value()) FinishStep();
  ASSERT_THAT(h->landings, SizeIs(2));
  const LandingId third = h->landings.begin()->first;
  h->RefusePush(1, 1, h->landings.rbegin()->first);
  while (h->ledger().free > 0 && h->step.has_value()) FinishStep();
  ASSERT_EQ(counters().landings_given_up, 0u);
  while (counters().landings_given_up == 0 && h->step.has_value()) FinishStep();
  EXPECT_EQ(counters().landings_given_up, 1u);
  EXPECT_EQ(quarantine(), 4u);
  h->CloseLanding(third);
  EXPECT_TRUE(h->step.has_value()) << "the second goes on";
  h->CloseLanding(h->OnlyLanding());
  FinishAllSteps();
  EXPECT_EQ(tokens.at(1), 19);
  EXPECT_EQ(tokens.at(2), 60);
  EXPECT_TRUE(h->AllFree());
}

// The third, of lower rank, goes on: nothing is lacking once the old transfer
// of the second is over.
TEST_F(DecodeFetchRoom, NobodyIsPushedOutForWhatComesFreeAnyway) {
  Open(Small(10));
  h->Serve(1, 1, toy::MakeSpec(20, 60));
  HandOver(2, toy::MakeSpec(64, 10));
  h->Reserve(1, 3, toy::MakeSpec(30, 20));
  ASSERT_THAT(h->landings, SizeIs(1));
  const LandingId third = h->OnlyLanding();
  while (counters().preemptions < 3 && h->step.has_value()) FinishStep();
  ASSERT_EQ(quarantine(), 4u);
  h->Verified(third, {9});
  h->Release(1, 1);
  FinishStep();
  EXPECT_EQ(h->ledger().free, 4u) << "one less than the second needs";
  EXPECT_EQ(counters().preemptions, 3u);
  ASSERT_TRUE(h->step.has_value());
  EXPECT_EQ(h->step->spans[0].first_position, 30u) << "the third's";
  while (!h->landings.empty()) {
    h->CloseLanding(h->landings.begin()->first);
    FinishAllSteps();
  }
  EXPECT_EQ(tokens.at(2), 9);
  EXPECT_EQ(tokens.at(3), 19);
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(h->AllFree());
}

// The second has no block for its next row until the first goes on.
class DecodeFetchStandstill : public DecodeFetchRoom {
 protected:
  void SetUp() override {
    Open(Small(6));
    HandOver(1, toy::MakeSpec(32, 20));
    h->Serve(1, 2, toy::MakeSpec(20, 60));
    FinishAllSteps();
    ASSERT_EQ(h->scheduler.fetching(), 1u);
    ASSERT_EQ(h->scheduler.waiting(), 1u);
    ASSERT_EQ(h->ledger().free, 0u);
  }
};

TEST_F(DecodeFetchStandstill, NobodyFailsBecauseOfAFetch) {
  Wait(std::chrono::seconds(10));
  EXPECT_EQ(failures, 0);
  h->Pushed(h->OnlyLanding());
  FinishAllSteps();
  EXPECT_EQ(tokens[1], 19);
  EXPECT_EQ(tokens[2], 60);
  EXPECT_EQ(counters().given_up, 0u);
  EXPECT_TRUE(h->AllFree());
}

TEST_F(DecodeFetchStandstill, PatienceStartsWithItsFailure) {
  Wait(std::chrono::seconds(10));
  h->Fail(h->OnlyLanding());
  EXPECT_EQ(h->scheduler.waiting(), 2u);
  Wait(std::chrono::milliseconds(1900));
  EXPECT_EQ(failures, 0);
  h->CloseLanding(h->OnlyLanding());
  ASSERT_TRUE(h->step.has_value());
  FinishAllSteps();
  EXPECT_EQ(tokens[1], 19);
  EXPECT_EQ(tokens[2], 60);
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(h->AllFree());
}

TEST_F(DecodeFetchStandstill, ATransferThatDoesNotEndIsNotWaitedForForEver) {
  h->RefusePush(1, 1, h->OnlyLanding());
  Wait(std::chrono::milliseconds(2100));
  EXPECT_EQ(failures, 1) << "the second, which holds blocks and ranks last";
  Wait(std::chrono::milliseconds(2100));
  EXPECT_EQ(failures, 2);
  h->CloseLanding(h->OnlyLanding());
  EXPECT_TRUE(h->AllFree());
}

}  // namespace
}  // namespace baton::decode
