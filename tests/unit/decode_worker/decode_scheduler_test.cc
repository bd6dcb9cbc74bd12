#include "decode_worker/decode_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::SizeIs;

class DecodeSchedulerTest : public testing::Test {
 protected:
  DecodeSchedulerTest() { h.OpenSession(1); }

  std::vector<uint32_t> Tokens(const std::vector<v1::DecodeEvent>& events,
                               uint32_t choice = 0) {
    std::vector<uint32_t> ids;
    for (const auto& event : events) {
      for (const auto& token : event.tokens().tokens()) {
        if (token.choice() == choice) ids.push_back(token.token_id());
      }
    }
    return ids;
  }
  SchedulerHarness h;
};

TEST_F(DecodeSchedulerTest, OneLandingFromReserveToDone) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].reserved().attempt_id(), 5u);
  EXPECT_EQ(events[0].reserved().ticket().token_count(), 20u);
  EXPECT_EQ(h.ledger()[BlockUse::kLanding], 2u);
  EXPECT_THAT(h.landings.begin()->second.blocks, SizeIs(2));

  h.Verified(h.OnlyLanding(), {9});
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 2u);
  events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].landed().blocks(), 2u);
  EXPECT_EQ(events[0].landed().transfer_ms(), 3);
  EXPECT_EQ(events[0].landed().transport(), "toy");

  ASSERT_TRUE(h.step.has_value());
  EXPECT_EQ(h.step->spans[0].tokens, std::vector<TokenId>{9});
  EXPECT_EQ(h.step->spans[0].first_position, 20u);
  EXPECT_EQ(h.step->spans[0].draws[0].position, 21u);
  EXPECT_THAT(h.step->cleared, SizeIs(0)) << "the landed partial block";
  int steps = 0;
  while (h.step.has_value()) {
    h.FinishStep();
    ++steps;
  }
  EXPECT_EQ(steps, 29);
  events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(30));
  EXPECT_EQ(events[0].tokens().tokens(0).index(), 1u);
  EXPECT_EQ(events[28].tokens().tokens(0).finish().reason(),
            v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(events[29].done().attempt_id(), 5u);
  EXPECT_EQ(events[29].done().steps(), 29u);
  EXPECT_TRUE(h.AllFree());
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(DecodeSchedulerTest, BlocksAreTakenAndClearedWhenEntered) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.Verified(h.OnlyLanding(), {9});
  std::vector<uint32_t> cleared_at;
  while (h.step.has_value()) {
    const uint32_t position = h.step->spans[0].first_position;
    if (!h.step->cleared.empty()) cleared_at.push_back(position);
    EXPECT_EQ(h.ledger()[BlockUse::kRunning], BlocksFor(position + 1));
    h.FinishStep();
  }
  EXPECT_THAT(cleared_at, testing::ElementsAre(32, 48));
}

TEST_F(DecodeSchedulerTest, StopAndServedLocallyAgree) {
  auto eos_at_25 = [](const DrawRequest& d) {
    return d.position == 25 ? toy::kEnd : toy::AnyToken(d);
  };
  h.Serve(1, 5, toy::MakeSpec(20, 30));
  h.FinishAllSteps(eos_at_25);
  auto local = h.TakeEvents(1);
  EXPECT_TRUE(local.back().has_done());
  EXPECT_EQ(local[0].tokens().tokens(0).index(), 0u);

  const auto tokens = Tokens(local);
  h.Reserve(1, 6, toy::MakeSpec(20, 30));
  h.TakeEvents(1);
  h.Verified(h.OnlyLanding(), {tokens[0]});
  h.FinishAllSteps(eos_at_25);
  auto landed = h.TakeEvents(1);
  EXPECT_EQ(Tokens(landed),
            std::vector<uint32_t>(tokens.begin() + 1, tokens.end()));
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, RepeatedReserveGetsTheSameTicket) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].reserved().SerializeAsString(),
            events[1].reserved().SerializeAsString());
  EXPECT_EQ(h.ledger()[BlockUse::kLanding], 2u);
}

TEST_F(DecodeSchedulerTest, RefusalHoldsNothing) {
  h.Reserve(1, 1, toy::MakeSpec(20 * 16, 16 * 40));  // 60 of 64
  h.TakeEvents(1);
  const Ledger before = h.ledger();
  h.Reserve(1, 2, toy::MakeSpec(20, 640));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].refused().attempt_id(), 2u);
  EXPECT_EQ(events[0].refused().reason(),
            "blocks: 102 in use at the peak, 62 allowed");
  EXPECT_GT(events[0].refused().retry_after_ms(), 0u);
  EXPECT_EQ(h.ledger(), before);
  h.Release(1, 2);
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
}

TEST_F(DecodeSchedulerTest, LandingsAreCappedAtAFraction) {
  h.Reserve(1, 1, toy::MakeSpec(20 * 16, 16));
  h.Reserve(1, 2, toy::MakeSpec(20 * 16, 16));
  auto events = h.TakeEvents(1);
  EXPECT_TRUE(events[0].has_reserved()) << "20 of 32 allowed";
  EXPECT_THAT(events[1].refused().reason(), HasSubstr("landings: 2"));
  h.Verified(h.OnlyLanding(), {9});
  h.TakeEvents(1);
  h.Reserve(1, 3, toy::MakeSpec(20 * 16, 16));
  EXPECT_TRUE(h.TakeEvents(1)[0].has_reserved());
}

TEST_F(DecodeSchedulerTest, SequencesAreCapped) {
  h.Reserve(1, 1, toy::MakeSpec(5, 5, 8));
  h.Reserve(1, 2, toy::MakeSpec(5, 5, 8));
  h.Reserve(1, 3, toy::MakeSpec(5, 5, 1));
  auto events = h.TakeEvents(1);
  EXPECT_TRUE(events[1].has_reserved());
  EXPECT_THAT(events[2].refused().reason(), HasSubstr("sequences: 16 of 16"));
}

TEST_F(DecodeSchedulerTest, WhatNeverFitsFailsForGood) {
  h.Reserve(1, 1, toy::MakeSpec(1000, 100));
  h.Serve(1, 2, toy::MakeSpec(100, 400, 8));
  auto events = h.TakeEvents(1);
  for (const auto& event : events) {
    EXPECT_FALSE(event.failed().retryable());
    EXPECT_EQ(event.failed().cause(), v1::FAILURE_CAUSE_REQUEST);
    EXPECT_EQ(event.failed().code(),
              static_cast<int>(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(event.failed().message(), HasSubstr("never fits"));
  }
  h.Reserve(1, 3, toy::MakeSpec(0, 1));
  EXPECT_EQ(h.TakeEvents(1)[0].failed().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  h.Reserve(1, 4, toy::MakeSpec(500, 525));  // 64 blocks: the whole pool
  EXPECT_TRUE(h.TakeEvents(1)[0].has_reserved());
}

TEST_F(DecodeSchedulerTest, ChoicesShareThePromptAndCopyItsEnd) {
  h.Reserve(1, 5, toy::MakeSpec(40, 10, 3));
  EXPECT_EQ(h.ledger()[BlockUse::kLanding], 3u);
  h.Verified(h.OnlyLanding(), {9, 10, 11});
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 5u);
  ASSERT_THAT(h.step->spans, SizeIs(3));
  ASSERT_THAT(h.step->copies, SizeIs(2));
  EXPECT_EQ(h.step->copies[0].from, h.step->spans[0].blocks[2]);
  EXPECT_EQ(h.step->copies[0].to, h.step->spans[1].blocks[2]);
  EXPECT_EQ(h.step->copies[1].to, h.step->spans[2].blocks[2]);
  EXPECT_EQ(h.step->spans[0].blocks[0], h.step->spans[2].blocks[0]);
  h.FinishStep();
  EXPECT_THAT(h.step->copies, SizeIs(0));
  h.FinishAllSteps();
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, ChoicesEndedByTheSealDoNotRun) {
  h.Reserve(1, 5, toy::MakeSpec(40, 10, 3));
  h.Verified(h.OnlyLanding(), {toy::kEnd, 10, toy::kEnd});
  ASSERT_THAT(h.step->spans, SizeIs(1));
  EXPECT_THAT(h.step->copies, SizeIs(0));
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 3u);
  EXPECT_EQ(h.scheduler.Load().running_sequences(), 1u);
  h.FinishAllSteps();
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, AttemptEndedByTheSealIsDoneAtOnce) {
  h.Reserve(1, 5, toy::MakeSpec(40, 10, 2));
  h.Verified(h.OnlyLanding(), {toy::kEnd, toy::kEnd});
  EXPECT_FALSE(h.step.has_value());
  EXPECT_TRUE(h.TakeEvents(1).back().has_done());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, SealIsNotTrusted) {
  h.Reserve(1, 1, toy::MakeSpec(20, 10, 2));
  h.Verified(h.OnlyLanding(), {9});
  h.Reserve(1, 2, toy::MakeSpec(20, 10));
  h.Verified(h.OnlyLanding(), {toy::kVocabulary});
  h.Reserve(1, 3, toy::MakeSpec(20, 10));
  h.Verified(h.OnlyLanding(), {9}, /*index=*/1);
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(6));
  for (int i : {1, 3, 5}) {
    EXPECT_EQ(events[i].failed().code(),
              static_cast<int>(absl::StatusCode::kDataLoss));
    EXPECT_TRUE(events[i].failed().retryable());
    EXPECT_EQ(events[i].failed().cause(), v1::FAILURE_CAUSE_TRANSFER);
  }
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, ReplayContinuesTheIndex) {
  v1::SequenceSpec spec = toy::MakeSpec(20, 30);
  spec.mutable_choices(0)->add_generated_token_ids(40);
  spec.mutable_choices(0)->add_generated_token_ids(41);
  h.Reserve(1, 5, spec);
  EXPECT_EQ(h.landings.begin()->second.token_count, 22u);
  h.Verified(h.OnlyLanding(), {9}, /*index=*/2);
  h.TakeEvents(1);
  h.FinishStep();
  EXPECT_EQ(h.TakeEvents(1)[0].tokens().tokens(0).index(), 3u);
}

TEST_F(DecodeSchedulerTest, AttemptsJoinAndLeaveAtAnyStep) {
  h.Serve(1, 1, toy::MakeSpec(10, 20));
  h.FinishStep();
  EXPECT_EQ(h.step->rows(), 1u);
  h.Serve(1, 2, toy::MakeSpec(10, 3));
  h.FinishStep();
  EXPECT_EQ(h.step->rows(), 11u) << "one decode row beside a prefill";
  h.FinishStep();
  EXPECT_EQ(h.step->rows(), 2u);
  h.TakeEvents(1);
  h.FinishStep();
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1)) << "one message per step";
  EXPECT_EQ(events[0].tokens().tokens_size(), 2);
  h.FinishStep();
  EXPECT_EQ(h.TakeEvents(1)[1].done().attempt_id(), 2u);
  EXPECT_EQ(h.step->rows(), 1u);
}

TEST_F(DecodeSchedulerTest, LocalPrefillRunsInChunks) {
  h.Serve(1, 1, toy::MakeSpec(5, 100));
  h.FinishStep();
  h.Serve(1, 2, toy::MakeSpec(80, 10, 2));
  h.FinishStep();
  std::vector<size_t> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(h.step->rows());
    h.FinishStep();
  }
  EXPECT_THAT(rows, testing::ElementsAre(33, 33, 17, 3));
  EXPECT_EQ(h.scheduler.counters().prefill_tokens, 85u);
}

TEST(DecodeSchedulerStatic, NewBatchStartsWhenTheOldOneIsEmpty) {
  DecodeOptions options = SchedulerHarness::Options();
  options.batching = Batching::kStatic;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, toy::MakeSpec(10, 4));
  h.Serve(1, 2, toy::MakeSpec(10, 4));
  h.Reserve(1, 3, toy::MakeSpec(10, 4));
  h.Verified(h.OnlyLanding(), {9});
  int steps = 0;
  while (h.scheduler.counters().done == 0) {
    ASSERT_EQ(h.step->spans.size(), 1u);
    h.FinishStep();
    ++steps;
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(h.step->spans.size(), 2u) << "attempts 2 and 3 together";
  h.FinishAllSteps();
  EXPECT_TRUE(h.AllFree());
}

// Steps that take a millisecond and one more for each row.
CostModel MillisecondPerRow() {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(128, 1024)) {
    const double seconds = 1e-3 + 1e-3 * step.rows();
    probes.push_back({std::move(step), seconds});
  }
  return CostModel(probes);
}

TEST(DecodeSchedulerBatchCap, MoreChoicesThanTheTargetAllowsAreRefused) {
  DecodeOptions options = SchedulerHarness::Options();
  options.costs = MillisecondPerRow();
  options.tpot_target = milliseconds(6);
  SchedulerHarness h(options);
  h.OpenSession(1);
  EXPECT_GT(h.scheduler.Load().sequence_limit(), 3u);
  EXPECT_LT(h.scheduler.Load().sequence_limit(), 7u);
  uint32_t accepted = 0;
  for (uint64_t attempt = 1; attempt <= 8; ++attempt) {
    h.Reserve(1, attempt, toy::MakeSpec(10, 20));
    const auto events = h.TakeEvents(1);
    ASSERT_THAT(events, SizeIs(1));
    if (events[0].has_reserved()) {
      ++accepted;
    } else {
      EXPECT_THAT(events[0].refused().reason(), HasSubstr("step: "));
    }
  }
  EXPECT_EQ(accepted, h.scheduler.Load().sequence_limit());
}

TEST(DecodeSchedulerBatchCap, AChoiceThatEndsMakesRoomForTheNext) {
  DecodeOptions options = SchedulerHarness::Options();
  options.costs = MillisecondPerRow();
  options.tpot_target = milliseconds(1);  // for one, as nothing meets it
  SchedulerHarness h(options);
  h.OpenSession(1);
  EXPECT_EQ(h.scheduler.Load().sequence_limit(), 1u);
  h.Serve(1, 1, toy::MakeSpec(10, 3, 4));
  EXPECT_EQ(h.scheduler.Load().waiting_sequences(), 4u)
      << "alone, all choices of a request go together";
  h.Serve(1, 2, toy::MakeSpec(10, 3));
  EXPECT_TRUE(h.TakeEvents(1).back().has_refused());
  h.FinishStep();
  EXPECT_EQ(h.scheduler.Load().running_positions(), 4u * 11);
  h.FinishAllSteps();
  h.TakeEvents(1);
  h.Serve(1, 2, toy::MakeSpec(10, 3));
  h.FinishAllSteps();
  EXPECT_TRUE(h.TakeEvents(1).back().has_done());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, ReleaseOfALandingGoesThroughQuarantine) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.Release(1, 5);
  EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 2u);
  EXPECT_EQ(h.ledger()[BlockUse::kLanding], 0u) << "growth is free at once";
  EXPECT_TRUE(h.landings.begin()->second.cancelled);
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.AllFree());
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(DecodeSchedulerTest, ReleaseThatCrossesVerification) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.TakeEvents(1);
  h.Release(1, 5);
  h.Verified(h.OnlyLanding(), {9});
  EXPECT_TRUE(h.AllFree());
  EXPECT_FALSE(h.step.has_value());
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
}

TEST_F(DecodeSchedulerTest, ReleaseBeforeTheLandingOpened) {
  h.auto_open = false;
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.Release(1, 5);
  h.Open();
  EXPECT_TRUE(h.landings.begin()->second.cancelled);
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.AllFree());
  h.Reserve(1, 6, toy::MakeSpec(20, 30));
  h.Release(1, 6);
  h.Open(absl::ResourceExhaustedError("4096 landings"));
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, LandingThatCannotOpenIsARetryableFailure) {
  h.auto_open = false;
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.Open(absl::ResourceExhaustedError("4096 landings"));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_LOAD);
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, FailedLandingIsQuarantinedUntilClosed) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.TakeEvents(1);
  h.Fail(h.OnlyLanding());
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_TRANSFER);
  EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 2u);
  h.Release(1, 5);
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.AllFree());
}

// The holder tells the router why; this worker's word could overtake it.
TEST_F(DecodeSchedulerTest, LandingCancelledByItsHolderIsSilent) {
  h.Reserve(1, 5, toy::MakeSpec(20, 30));
  h.TakeEvents(1);
  h.landings.at(h.OnlyLanding()).failed = true;
  h.Feed(transfer::LandingFailed{h.OnlyLanding(), absl::CancelledError("")});
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
  EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 2u);
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, ReleaseWhileRunningWaitsForTheStep) {
  h.Serve(1, 5, toy::MakeSpec(20, 30, 2));
  h.FinishStep();
  h.TakeEvents(1);
  const uint32_t running = h.ledger()[BlockUse::kRunning];
  h.Release(1, 5);
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], running);
  h.FinishStep();
  EXPECT_TRUE(h.AllFree());
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
}

TEST_F(DecodeSchedulerTest, DeadlineActsInEveryPhase) {
  h.Reserve(1, 1, toy::MakeSpec(20, 30), 10);
  h.Serve(1, 2, toy::MakeSpec(20, 30), 10);
  h.Serve(1, 3, toy::MakeSpec(20, 30), 0);
  h.TakeEvents(1);
  EXPECT_EQ(h.landings.begin()->second.timeout, milliseconds(10));
  h.now += milliseconds(10);
  h.Feed(Tick{});
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(2));
  for (const auto& event : events) {
    EXPECT_EQ(event.failed().code(),
              static_cast<int>(absl::StatusCode::kDeadlineExceeded));
    EXPECT_FALSE(event.failed().retryable());
    EXPECT_EQ(event.failed().cause(), v1::FAILURE_CAUSE_REQUEST);
  }
  h.FinishAllSteps();
  h.CloseLanding(h.OnlyLanding());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, LostSessionEndsOnlyItsAttempts) {
  h.OpenSession(2);
  h.Serve(1, 1, toy::MakeSpec(20, 30));
  h.Serve(2, 1, toy::MakeSpec(20, 30));
  h.FinishStep();
  h.FinishStep();
  h.TakeEvents(2);
  h.Feed(SessionLost{SessionId(1)});
  h.FinishAllSteps();
  EXPECT_TRUE(h.TakeEvents(2).back().has_done());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodeSchedulerTest, CreditsCoverLocalPrefills) {
  EXPECT_EQ(h.Granted(1), 64u);
  h.Serve(1, 1, toy::MakeSpec(50, 5));
  EXPECT_EQ(h.Granted(1), 64u);
  h.FinishStep();
  EXPECT_EQ(h.Granted(1), 96u);
  h.Release(1, 1);
  EXPECT_EQ(h.Granted(1), 114u);
  h.Serve(1, 2, toy::MakeSpec(4000, 5));
  EXPECT_EQ(h.Granted(1), 4114u) << "a refused start is returned";
  h.Reserve(1, 3, toy::MakeSpec(50, 5));
  EXPECT_EQ(h.Granted(1), 4114u);
}

TEST_F(DecodeSchedulerTest, UnknownMessagesAreCounted) {
  h.Release(1, 9);
  h.Feed(transfer::LandingFailed{LandingId(9), absl::AbortedError("")});
  h.Feed(transfer::LandingClosed{LandingId(9)});
  h.Feed(transfer::LandingVerified{});
  h.Feed(transfer::TransferClosed{TransferId(9)});
  h.Feed(StepDone{4, {}});
  h.Feed(CommandReceived{SessionId(1), v1::DecodeCommand()});
  h.Feed(CommandReceived{SessionId(77), v1::DecodeCommand()});
  EXPECT_EQ(h.scheduler.counters().stale_messages, 8u);
}

}  // namespace
}  // namespace baton::decode
