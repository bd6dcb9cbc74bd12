#include "prefill_worker/prefill_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

class PrefillSchedulerTest : public testing::Test {
 protected:
  PrefillSchedulerTest() { h.OpenSession(1); }
  SchedulerHarness h;
};

TEST_F(PrefillSchedulerTest, OnePromptFromStartToHandOver) {
  h.Start(1, 5, toy::MakeSpec(70, 10));
  ASSERT_EQ(h.transfers.size(), 1u);
  const TransferId transfer = h.transfers.begin()->first;
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 5u);

  EXPECT_EQ(h.step->rows(), 32u);
  EXPECT_TRUE(h.step->spans[0].draws.empty());
  h.FinishStep();
  EXPECT_THAT(h.transfers.at(transfer).pushed, SizeIs(2));
  h.FinishStep();
  EXPECT_THAT(h.transfers.at(transfer).pushed, SizeIs(4));
  EXPECT_FALSE(h.transfers.at(transfer).seal.has_value());
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
  EXPECT_EQ(h.step->rows(), 6u);
  ASSERT_THAT(h.step->spans[0].draws, SizeIs(1));
  EXPECT_EQ(h.step->spans[0].draws[0].position, 70u);
  h.now += milliseconds(30);
  h.FinishStep();

  const auto& sent = h.transfers.at(transfer);
  ASSERT_THAT(sent.pushed, SizeIs(5));
  EXPECT_EQ(sent.pushed[3].written_tokens, 16u);
  EXPECT_EQ(sent.pushed[4].written_tokens, 6u);
  ASSERT_TRUE(sent.seal.has_value());
  EXPECT_EQ(h.ledger()[BlockUse::kSending], 5u);
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 0u);
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  const v1::FirstTokens& first = events[0].first_tokens();
  EXPECT_EQ(first.attempt_id(), 5u);
  EXPECT_EQ(first.prompt_tokens(), 70u);
  EXPECT_EQ(first.chunks(), 3u);
  EXPECT_EQ(first.prefill_ms(), 30);
  ASSERT_EQ(first.tokens_size(), 1);
  EXPECT_EQ(sent.seal->first_tokens(0).token_id(), first.tokens(0).token_id());

  h.now += milliseconds(4);
  h.Acknowledge(transfer);
  events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].handed_over().attempt_id(), 5u);
  EXPECT_EQ(events[0].handed_over().blocks(), 5u);
  EXPECT_EQ(events[0].handed_over().exposed_ms(), 4);
  EXPECT_EQ(h.ledger()[BlockUse::kPrefix], 4u) << "the whole ones";
  EXPECT_TRUE(h.AllFreeOrCached());
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(PrefillSchedulerTest, EveryBlockIsClearedOnceBeforeItsFirstUse) {
  h.Start(1, 5, toy::MakeSpec(100, 10));
  std::vector<uint32_t> cleared;
  while (h.step.has_value()) {
    for (const BlockRef& b : h.step->cleared) cleared.push_back(b.id.value());
    h.FinishStep();
  }
  EXPECT_THAT(cleared, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST_F(PrefillSchedulerTest, AllChoicesAreDrawnFromOneSpan) {
  h.Start(1, 5, toy::MakeSpec(20, 10, 4));
  ASSERT_THAT(h.step->spans, SizeIs(1));
  EXPECT_THAT(h.step->spans[0].draws, SizeIs(4));
  h.FinishStep();
  auto events = h.TakeEvents(1);
  ASSERT_EQ(events[0].first_tokens().tokens_size(), 4);
  EXPECT_EQ(events[0].first_tokens().tokens(3).choice(), 3u);
  EXPECT_EQ(h.transfers.begin()->second.seal->first_tokens_size(), 4);
}

TEST_F(PrefillSchedulerTest, NoHandOverWhenEveryChoiceEnds) {
  h.Start(1, 5, toy::MakeSpec(20, 10, 2));
  const TransferId transfer = h.transfers.begin()->first;
  h.FinishStep([](const DrawRequest&) { return toy::kEnd; });
  EXPECT_TRUE(h.transfers.at(transfer).aborted);
  EXPECT_FALSE(h.transfers.at(transfer).seal.has_value());
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].first_tokens().tokens(0).has_finish());
  h.CloseTransfer(transfer);
  EXPECT_TRUE(h.AllFree());
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
}

TEST_F(PrefillSchedulerTest, HandOverWhenOneChoiceGoesOn) {
  h.Start(1, 5, toy::MakeSpec(20, 10, 2));
  h.FinishStep([](const DrawRequest& d) {
    return d.choice == 0 ? toy::kEnd : TokenId{9};
  });
  EXPECT_TRUE(h.transfers.begin()->second.seal.has_value());
}

TEST_F(PrefillSchedulerTest, MaxTokensOneEndsAtTheFirstToken) {
  h.Start(1, 5, toy::MakeSpec(20, 1));
  h.FinishStep();
  auto events = h.TakeEvents(1);
  EXPECT_EQ(events[0].first_tokens().tokens(0).finish().reason(),
            v1::FINISH_REASON_LENGTH);
  EXPECT_TRUE(h.transfers.begin()->second.aborted);
}

TEST_F(PrefillSchedulerTest, ShortPromptPassesALongOne) {
  h.Start(1, 1, toy::MakeSpec(900, 10));
  h.Start(1, 2, toy::MakeSpec(8, 10));
  h.FinishStep();
  h.FinishStep();
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].first_tokens().attempt_id(), 2u);
}

TEST_F(PrefillSchedulerTest, ShortPromptsPassAnyNumberOfLongOnesTogether) {
  for (uint64_t attempt = 1; attempt <= 3; ++attempt) {
    h.Start(1, attempt, toy::MakeSpec(200, 10));
  }
  h.FinishStep();
  h.FinishStep();
  h.Start(1, 11, toy::MakeSpec(6, 10));
  h.Start(1, 12, toy::MakeSpec(7, 10));
  h.Start(1, 13, toy::MakeSpec(8, 10));
  h.TakeEvents(1);
  h.FinishStep();  // a chunk of a long one, as they came
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
  EXPECT_THAT(h.step->spans, SizeIs(4)) << "the short ones, and a long one";
  h.FinishStep();
  EXPECT_THAT(h.TakeEvents(1), SizeIs(3)) << "their first tokens";
}

TEST_F(PrefillSchedulerTest, ACancelEndsTheWorkWithTheChunkThatRuns) {
  h.Start(1, 1, toy::MakeSpec(200, 10));
  h.FinishStep();
  h.Cancel(1, 1);
  h.FinishStep();
  EXPECT_FALSE(h.step.has_value());
  EXPECT_EQ(h.scheduler.counters().steps, 2u);
}

TEST_F(PrefillSchedulerTest, CreditIsTwoStepsAsTheyArePredicted) {
  PrefillOptions options = SchedulerHarness::Options();
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(32, 1024)) {
    const double took = 1e-3 * step.rows();
    probes.push_back({std::move(step), took});
  }
  options.costs = CostModel(probes);
  options.budget.target = milliseconds(20);
  SchedulerHarness slow(options);
  slow.OpenSession(1);
  const v1::WorkerLoad load = slow.scheduler.Load();
  EXPECT_GE(load.step_prompt_tokens(), 16u);
  EXPECT_LT(load.step_prompt_tokens(), 24u) << "a millisecond each, in 20";
  EXPECT_EQ(slow.loads[SessionId(1)].granted_prefill_tokens(),
            2 * load.step_prompt_tokens());
  EXPECT_EQ(slow.loads[SessionId(1)].granted_short_prefill_tokens(),
            2 * load.step_prompt_tokens());
}

TEST_F(PrefillSchedulerTest, PromptsWaitForBlocksInOrder) {
  h.Start(1, 1, toy::MakeSpec(60 * 16, 10));
  h.Start(1, 2, toy::MakeSpec(10 * 16, 10));
  h.Start(1, 3, toy::MakeSpec(8, 10));
  EXPECT_EQ(h.transfers.size(), 1u);
  h.now += milliseconds(5);
  h.Feed(Tick{});
  EXPECT_EQ(h.loads[SessionId(1)].waiting_sequences(), 2u);
  EXPECT_EQ(h.loads[SessionId(1)].running_sequences(), 1u);
  h.FinishAllSteps();
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_EQ(h.transfers.size(), 2u);
}

TEST_F(PrefillSchedulerTest, CancelDuringAStepFreesAfterIt) {
  h.Start(1, 1, toy::MakeSpec(100, 10));
  h.FinishStep();
  const TransferId transfer = h.transfers.begin()->first;
  h.Cancel(1, 1);
  EXPECT_TRUE(h.transfers.at(transfer).aborted);
  EXPECT_EQ(h.ledger()[BlockUse::kSending], 2u);
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 5u);
  h.FinishStep();
  EXPECT_FALSE(h.step.has_value()) << "no further chunk";
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 0u);
  EXPECT_EQ(h.ledger()[BlockUse::kSending], 2u);
  h.CloseTransfer(transfer);
  EXPECT_TRUE(h.AllFree());
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
}

TEST_F(PrefillSchedulerTest, CancelThatCrossesTheAcknowledgement) {
  h.Start(1, 1, toy::MakeSpec(20, 10));
  h.FinishStep();
  const TransferId transfer = h.transfers.begin()->first;
  h.Cancel(1, 1);
  h.Acknowledge(transfer);
  EXPECT_TRUE(h.AllFree());
  EXPECT_TRUE(h.scheduler.idle());
  const uint64_t stale = h.scheduler.counters().stale_messages;
  h.Cancel(1, 1);
  EXPECT_EQ(h.scheduler.counters().stale_messages, stale + 1);
}

TEST_F(PrefillSchedulerTest, CancelBeforeTheTransferOpened) {
  h.auto_open = false;
  h.Start(1, 1, toy::MakeSpec(20, 10));
  h.Cancel(1, 1);
  h.FinishStep();
  h.Open();
  EXPECT_TRUE(h.transfers.begin()->second.aborted);
  EXPECT_FALSE(h.scheduler.idle());
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(PrefillSchedulerTest, LateOpenPushesEverythingAndSeals) {
  h.auto_open = false;
  h.Start(1, 1, toy::MakeSpec(40, 10));
  h.FinishAllSteps();
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 3u);
  h.Open();
  EXPECT_THAT(h.transfers.begin()->second.pushed, SizeIs(3));
  EXPECT_TRUE(h.transfers.begin()->second.seal.has_value());
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 0u);
}

TEST_F(PrefillSchedulerTest, RefusedTransferIsARetryableFailure) {
  h.auto_open = false;
  h.Start(1, 1, toy::MakeSpec(40, 10));
  h.Open(absl::InvalidArgumentError("ticket.nonce: 3 bytes"));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_TRANSFER);
  EXPECT_THAT(events[0].failed().message(), HasSubstr("ticket.nonce"));
  h.FinishAllSteps();
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefillSchedulerTest, FailedTransferIsARetryableFailure) {
  h.Start(1, 1, toy::MakeSpec(100, 10));
  h.FinishStep();
  const TransferId transfer = h.transfers.begin()->first;
  h.Fail(transfer);
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_TRANSFER);
  EXPECT_EQ(events[0].failed().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  h.FinishAllSteps();
  EXPECT_EQ(h.ledger()[BlockUse::kSending], 2u);
  h.CloseTransfer(transfer);
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefillSchedulerTest, DeadlineActsInEveryPhase) {
  h.Start(1, 1, toy::MakeSpec(60 * 16, 10), 10);  // will be running
  h.Start(1, 2, toy::MakeSpec(10 * 16, 10), 20);  // waiting for blocks
  h.Start(1, 3, toy::MakeSpec(10, 10), 0);        // over at once
  EXPECT_EQ(h.TakeEvents(1)[0].failed().attempt_id(), 3u);
  EXPECT_EQ(h.scheduler.NextDeadline(), h.now + milliseconds(2))
      << "a load report";
  h.now += milliseconds(25);
  h.Feed(Tick{});
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(2));
  for (const auto& event : events) {
    EXPECT_EQ(event.failed().code(),
              static_cast<int>(absl::StatusCode::kDeadlineExceeded));
    EXPECT_FALSE(event.failed().retryable());
    EXPECT_EQ(event.failed().cause(), v1::FAILURE_CAUSE_REQUEST);
  }
  h.FinishStep();
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.AllFree());

  h.Start(1, 4, toy::MakeSpec(10, 10), 10);
  h.FinishStep();
  h.TakeEvents(1);
  h.now += milliseconds(25);
  h.Feed(Tick{});
  EXPECT_EQ(h.TakeEvents(1)[0].failed().attempt_id(), 4u) << "while sending";
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefillSchedulerTest, TransferDeadlineIsTheEarlierOfTicketAndRequest) {
  h.Start(1, 1, toy::MakeSpec(10, 10), 5000);
  EXPECT_EQ(h.transfers.begin()->second.deadline, h.now + milliseconds(5000));
  h.Start(1, 2, toy::MakeSpec(10, 10), 90000);
  EXPECT_EQ(h.transfers.rbegin()->second.deadline, h.now + seconds(30));
}

TEST_F(PrefillSchedulerTest, LostSessionEndsOnlyItsAttempts) {
  h.OpenSession(2);
  h.Start(1, 1, toy::MakeSpec(10, 10));
  h.Start(2, 1, toy::MakeSpec(10, 10));
  h.Feed(SessionLost{SessionId(1)});
  h.FinishAllSteps();
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0));
  auto events = h.TakeEvents(2);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(events[0].has_first_tokens());
  EXPECT_TRUE(h.transfers.begin()->second.aborted);
  h.Start(1, 9, toy::MakeSpec(10, 10));
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
}

TEST_F(PrefillSchedulerTest, BadCommandsAreAnsweredNotTrusted) {
  h.Start(1, 1, toy::MakeSpec(5000, 10));
  h.Start(1, 2, toy::MakeSpec(65 * 16, 10));
  v1::PrefillCommand command;
  command.mutable_start()->set_attempt_id(3);
  *command.mutable_start()->mutable_sequence() = toy::MakeSpec(20, 10);
  command.mutable_start()->mutable_ticket()->set_token_count(19);
  command.mutable_start()->set_deadline_ms(1000);
  h.Feed(CommandReceived{SessionId(1), command});
  command.mutable_start()->mutable_ticket()->set_token_count(20);
  command.mutable_start()->mutable_ticket()->set_held_tokens(16);
  h.Feed(CommandReceived{SessionId(1), command});
  h.Feed(CommandReceived{SessionId(1), v1::PrefillCommand()});
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_THAT(events[0].failed().message(), HasSubstr("prompt_token_ids"));
  EXPECT_THAT(events[1].failed().message(),
              HasSubstr("needs 65 blocks, the pool has 64"));
  EXPECT_THAT(events[2].failed().message(),
              HasSubstr("ticket.token_count: got 19, allowed 20"));
  EXPECT_THAT(events[3].failed().message(), HasSubstr("ticket.held_tokens"));
  for (const auto& event : events) EXPECT_FALSE(event.failed().retryable());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefillSchedulerTest, CreditsComeBackHoweverAnAttemptEnds) {
  EXPECT_EQ(h.Granted(1), 64u);
  h.Start(1, 1, toy::MakeSpec(100, 10));
  EXPECT_EQ(h.Granted(1), 64u);
  h.FinishStep();
  EXPECT_EQ(h.Granted(1), 96u);
  h.Cancel(1, 1);
  EXPECT_EQ(h.Granted(1), 164u);
  h.FinishStep();
  EXPECT_EQ(h.Granted(1), 164u);
  h.Start(1, 2, toy::MakeSpec(5000, 10));
  EXPECT_EQ(h.Granted(1), 5164u);
}

TEST_F(PrefillSchedulerTest, DrainFinishesWhatWasAccepted) {
  h.Start(1, 1, toy::MakeSpec(20, 10));
  h.Feed(DrainStarted{});
  h.Start(1, 2, toy::MakeSpec(20, 10));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].failed().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_LOAD);
  h.FinishStep();
  EXPECT_TRUE(h.TakeEvents(1)[0].has_first_tokens());
  EXPECT_FALSE(h.scheduler.idle());
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFreeOrCached());
}

TEST_F(PrefillSchedulerTest, ShutDownEndsEverything) {
  h.Start(1, 1, toy::MakeSpec(60 * 16, 10));
  h.Start(1, 2, toy::MakeSpec(10 * 16, 10));
  h.Feed(ShutDown{});
  EXPECT_THAT(h.TakeEvents(1), SizeIs(2));
  h.FinishStep();
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefillSchedulerTest, DuplicateStartIsANoOp) {
  h.Start(1, 1, toy::MakeSpec(20, 10));
  h.Start(1, 1, toy::MakeSpec(20, 10));
  EXPECT_EQ(h.transfers.size(), 1u);
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
}

TEST_F(PrefillSchedulerTest, UnknownTransfersAndOldStepsAreCounted) {
  h.Feed(transfer::TransferAcked{TransferId(99)});
  h.Feed(transfer::TransferFailed{TransferId(99), absl::AbortedError("")});
  h.Feed(transfer::TransferClosed{TransferId(99)});
  h.Feed(transfer::LandingClosed{LandingId(99)});
  h.Feed(StepDone{1, {}});
  EXPECT_EQ(h.scheduler.counters().stale_messages, 5u);
}

TEST(PrefillSchedulerQueue, IsBounded) {
  SchedulerHarness h(64, 32, 2);
  h.OpenSession(1);
  for (uint64_t i = 1; i <= 3; ++i) h.Start(1, i, toy::MakeSpec(20, 10));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].failed().attempt_id(), 3u);
  EXPECT_TRUE(events[0].failed().retryable());
  EXPECT_EQ(events[0].failed().cause(), v1::FAILURE_CAUSE_LOAD);
}

}  // namespace
}  // namespace baton::prefill
