// Blocks that were handed over are kept, and pushed once more on request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

v1::SequenceSpec Spec(uint32_t tokens, const std::string& salt = "s") {
  v1::SequenceSpec spec = toy::MakeSpec(tokens, 10);
  spec.set_prefix_salt(salt);
  return spec;
}

// An attempt from its start to its acknowledged hand-over.
void HandOver(SchedulerHarness* h, uint64_t attempt,
              const v1::SequenceSpec& spec) {
  h->Start(1, attempt, spec);
  h->FinishAllSteps();
  h->Acknowledge(h->transfers.rbegin()->first);
  h->TakeEvents(1);
}

class PrefixPushTest : public testing::Test {
 protected:
  PrefixPushTest() { h.OpenSession(1); }

  void HandOver(uint64_t attempt, const v1::SequenceSpec& spec) {
    prefill::HandOver(&h, attempt, spec);
  }
  uint32_t cached() const { return h.ledger()[BlockUse::kPrefix]; }
  uint32_t sending() const { return h.ledger()[BlockUse::kSending]; }
  const PushCounters& pushes() const { return h.scheduler.counters().pushes; }
  // The one refusal since the last call.
  std::string Refusal() {
    const auto events = h.TakeEvents(1);
    EXPECT_THAT(events, SizeIs(1));
    if (events.empty()) return "";
    EXPECT_TRUE(events[0].has_push_refused()) << events[0].DebugString();
    EXPECT_EQ(events[0].push_refused().attempt_id(), 5u);
    EXPECT_EQ(events[0].push_refused().landing_id(), 70u);
    gone_ = events[0].push_refused().gone();
    return events[0].push_refused().reason();
  }

  SchedulerHarness h;
  bool gone_ = false;                       // as the last refusal says
  const v1::SequenceSpec spec_ = Spec(70);  // 4 whole blocks
};

TEST_F(PrefixPushTest, FromTheHandOverToTheAcknowledgement) {
  HandOver(5, spec_);
  EXPECT_EQ(cached(), 4u);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  ASSERT_THAT(h.transfers, SizeIs(1));
  const auto& [id, transfer] = *h.transfers.begin();
  EXPECT_EQ(transfer.ticket.landing_id(), 70u);
  EXPECT_EQ(transfer.deadline, h.now + seconds(20));
  ASSERT_THAT(transfer.pushed, SizeIs(4));
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(transfer.pushed[i].ordinal, i);
    EXPECT_EQ(transfer.pushed[i].block.id, BlockId(i));
    EXPECT_EQ(transfer.pushed[i].written_tokens, 16u);
  }
  ASSERT_TRUE(transfer.seal.has_value());
  EXPECT_EQ(transfer.seal->first_tokens_size(), 0);
  EXPECT_EQ(sending(), 4u);
  EXPECT_FALSE(h.scheduler.idle());
  EXPECT_FALSE(h.step.has_value()) << "nothing is computed";
  h.Acknowledge(id);
  EXPECT_EQ(cached(), 4u) << "for the next time";
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFreeOrCached());
  EXPECT_THAT(h.TakeEvents(1), IsEmpty()) << "whoever asked knows in band";
  EXPECT_EQ(pushes().acked, 1u);
  EXPECT_EQ(pushes().bytes, 400u);
  EXPECT_EQ(h.scheduler.counters().handed_over, 1u);
}

TEST_F(PrefixPushTest, APartOfThePrefixAndTheBlocksOfAReplay) {
  v1::SequenceSpec replay = Spec(30);
  for (uint32_t i = 0; i < 20; ++i) {
    replay.mutable_choices(0)->add_generated_token_ids(40 + i);
  }
  replay.set_max_tokens(50);
  HandOver(5, replay);
  EXPECT_EQ(cached(), 3u);
  h.Push(1, h.PushOf(5, 70, replay, 3));
  h.Push(1, h.PushOf(6, 71, replay, 2));
  ASSERT_THAT(h.transfers, SizeIs(2)) << "several at once";
  EXPECT_THAT(h.transfers.rbegin()->second.pushed, SizeIs(2));
  EXPECT_EQ(
      h.scheduler.pool().Holds(h.transfers.begin()->second.pushed[0].block,
                               BlockUse::kSending),
      2u);
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_EQ(sending(), 2u);
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_EQ(cached(), 3u);
}

TEST_F(PrefixPushTest, WhatIsNotHeldIsRefused) {
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(Refusal(), "not held");
  EXPECT_TRUE(gone_) << "no such attempt is here";
  HandOver(5, spec_);
  h.Push(1, h.PushOf(5, 70, Spec(70, "another"), 4));
  EXPECT_EQ(Refusal(), "not held") << "salts never share";
  v1::PushPrefix push = h.PushOf(5, 70, spec_, 4);
  push.mutable_ticket()->set_token_count(48);
  push.mutable_ticket()->set_block_count(3);
  h.Push(1, push);
  EXPECT_EQ(Refusal(), "not held") << "it has four blocks";
  EXPECT_THAT(h.transfers, IsEmpty());
  EXPECT_EQ(sending(), 0u);
  EXPECT_EQ(pushes().refused, 3u);
  EXPECT_EQ(h.scheduler.counters().failed, 0u);
}

// The receiver knows sooner than the sender that everything arrived.
TEST_F(PrefixPushTest, WhatIsNotAcknowledgedYetIsNotGone) {
  h.Start(1, 5, spec_);
  h.FinishAllSteps();
  h.TakeEvents(1);
  const TransferId hand_over = h.transfers.begin()->first;
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(Refusal(), "not held yet");
  EXPECT_FALSE(gone_);
  h.Acknowledge(hand_over);
  h.TakeEvents(1);
  h.Push(1, h.PushOf(5, 71, spec_, 4));
  EXPECT_THAT(h.TakeEvents(1), IsEmpty());
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_EQ(pushes().acked, 1u);
}

TEST_F(PrefixPushTest, WhatWasEvictedIsGone) {
  HandOver(5, spec_);
  h.Start(1, 6, toy::MakeSpec(64 * 16, 10));
  ASSERT_EQ(cached(), 0u);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(Refusal(), "not held");
  EXPECT_TRUE(gone_);
}

TEST_F(PrefixPushTest, AMalformedPushIsRefusedByTheField) {
  HandOver(5, spec_);
  const std::pair<void (*)(v1::PushPrefix*), const char*> kBad[] = {
      {[](auto* p) { p->mutable_ticket()->set_token_count(63); },
       "push.ticket.token_count: got 63, allowed multiples of 16"},
      {[](auto* p) { p->mutable_ticket()->set_token_count(0); },
       "push.ticket.token_count: got 0, allowed multiples of 16"},
      {[](auto* p) { p->mutable_ticket()->set_held_tokens(16); },
       "push.ticket.held_tokens: got 16, allowed 0"},
      {[](auto* p) { p->mutable_ticket()->set_block_count(5); },
       "push.ticket.block_count: got 5, allowed 4"},
      {[](auto* p) { p->set_prefix_hash(std::string(31, 'x')); },
       "push.prefix_hash: got 31, allowed 32 bytes"},
      {[](auto* p) { p->clear_prefix_hash(); },
       "push.prefix_hash: got 0, allowed 32 bytes"},
  };
  for (const auto& [spoil, why] : kBad) {
    v1::PushPrefix push = h.PushOf(5, 70, spec_, 4);
    spoil(&push);
    h.Push(1, push);
    EXPECT_EQ(Refusal(), why);
    EXPECT_FALSE(gone_);
  }
  EXPECT_EQ(sending(), 0u);
}

TEST_F(PrefixPushTest, ATicketThatTheTransferRefusesIsToldAndHoldsNothing) {
  HandOver(5, spec_);
  h.auto_open = false;
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(sending(), 4u);
  h.Open(absl::InvalidArgumentError("ticket.nonce: 3 bytes"));
  EXPECT_EQ(Refusal(), "ticket.nonce: 3 bytes");
  EXPECT_FALSE(gone_);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_EQ(cached(), 4u);
  EXPECT_EQ(pushes().refused, 1u);
  EXPECT_EQ(h.scheduler.counters().transfer_failures, 0u);
}

TEST_F(PrefixPushTest, AFailedPushFailsNoAttempt) {
  HandOver(5, spec_);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  const TransferId id = h.transfers.begin()->first;
  h.Fail(id);
  EXPECT_EQ(sending(), 4u) << "the transport may still read them";
  h.CloseTransfer(id);
  EXPECT_EQ(cached(), 4u);
  EXPECT_THAT(h.TakeEvents(1), IsEmpty());
  EXPECT_EQ(pushes().failed, 1u);
  EXPECT_EQ(h.scheduler.counters().transfer_failures, 0u);
  EXPECT_EQ(h.scheduler.counters().failed, 0u);

  h.Push(1, h.PushOf(5, 70, spec_, 4));
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_EQ(pushes().failed, 2u);
}

TEST_F(PrefixPushTest, ALandingThatWasGivenUpIsNoFailure) {
  HandOver(5, spec_);
  for (const absl::Status& status :
       {absl::CancelledError("released"), absl::NotFoundError("unknown")}) {
    h.Push(1, h.PushOf(5, 70, spec_, 4));
    h.Fail(h.transfers.begin()->first, status);
    h.CloseTransfer(h.transfers.begin()->first);
  }
  EXPECT_EQ(pushes().cancelled, 2u);
  EXPECT_EQ(pushes().failed, 0u);
}

TEST_F(PrefixPushTest, DeadlineIsTheEarlierOfTicketAndCommand) {
  HandOver(5, spec_);
  v1::PushPrefix push = h.PushOf(5, 70, spec_, 4);
  push.mutable_ticket()->set_timeout_ms(100);
  h.Push(1, push);
  EXPECT_EQ(h.transfers.begin()->second.deadline, h.now + milliseconds(100));
  h.now += milliseconds(100);
  h.Feed(Tick{});
  EXPECT_TRUE(h.transfers.begin()->second.aborted);
  EXPECT_EQ(sending(), 4u);
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_EQ(cached(), 4u);
  EXPECT_EQ(pushes().cancelled, 1u);
  EXPECT_THAT(h.TakeEvents(1), IsEmpty());
}

TEST_F(PrefixPushTest, TheNextDeadlineIsThatOfAPush) {
  HandOver(5, spec_);
  h.Feed(SessionOpened{SessionId(2)});
  v1::PushPrefix push = h.PushOf(5, 70, spec_, 4);
  push.set_deadline_ms(1);
  h.Push(1, push);
  EXPECT_EQ(h.scheduler.NextDeadline(), h.now + milliseconds(1));
}

struct End {
  const char* name;
  void (*happen)(SchedulerHarness*);
  bool opened;
};

class PrefixPushEndTest : public PrefixPushTest,
                          public testing::WithParamInterface<End> {};

TEST_P(PrefixPushEndTest, EndsThePush) {
  HandOver(5, spec_);
  h.auto_open = GetParam().opened;
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  GetParam().happen(&h);
  if (!GetParam().opened) h.Open();
  ASSERT_THAT(h.transfers, SizeIs(1));
  EXPECT_TRUE(h.transfers.begin()->second.aborted);
  EXPECT_FALSE(h.scheduler.idle());
  h.CloseTransfer(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFreeOrCached());
  EXPECT_EQ(cached(), 4u);
  EXPECT_EQ(pushes().cancelled, 1u);
  EXPECT_EQ(h.scheduler.counters().stale_messages, 0u);
  EXPECT_THAT(h.TakeEvents(1), IsEmpty());
}

void CancelIt(SchedulerHarness* h) { h->Cancel(1, 5); }
void LoseIt(SchedulerHarness* h) { h->Feed(SessionLost{SessionId(1)}); }
void ShutItDown(SchedulerHarness* h) { h->Feed(ShutDown{}); }

INSTANTIATE_TEST_SUITE_P(
    Ends, PrefixPushEndTest,
    testing::Values(End{"Cancel", CancelIt, true},
                    End{"CancelBeforeItOpened", CancelIt, false},
                    End{"SessionLost", LoseIt, true},
                    End{"SessionLostBeforeItOpened", LoseIt, false},
                    End{"ShutDown", ShutItDown, true},
                    End{"ShutDownBeforeItOpened", ShutItDown, false}),
    [](const auto& end) { return end.param.name; });

TEST_F(PrefixPushTest, AVoidPushThatCannotOpenIsToldToo) {
  HandOver(5, spec_);
  h.auto_open = false;
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  h.Cancel(1, 5);
  EXPECT_EQ(sending(), 0u) << "nothing reads them";
  h.Open(absl::NotFoundError("no"));
  EXPECT_EQ(Refusal(), "no");
  EXPECT_FALSE(gone_) << "the blocks are there";
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_EQ(pushes().cancelled, 1u);
  EXPECT_EQ(pushes().refused, 0u) << "it ended once";
}

TEST_F(PrefixPushTest, AnAcknowledgementMayCrossTheEnd) {
  HandOver(5, spec_);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  h.Cancel(1, 5);
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_EQ(cached(), 4u);
  EXPECT_EQ(pushes().acked, 0u);
  EXPECT_EQ(pushes().cancelled, 1u);
}

TEST_F(PrefixPushTest, ARepeatIsANoOpAndAnotherLandingTakesOver) {
  HandOver(5, spec_);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_THAT(h.transfers, SizeIs(1));
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
  h.Push(1, h.PushOf(5, 71, spec_, 4));
  ASSERT_THAT(h.transfers, SizeIs(2));
  const TransferId first = h.transfers.begin()->first;
  EXPECT_TRUE(h.transfers.at(first).aborted);
  h.CloseTransfer(first);
  h.Push(1, h.PushOf(5, 71, spec_, 4));
  EXPECT_EQ(h.scheduler.counters().stale_messages, 2u)
      << "the end of the first leaves the second alone";
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
}

TEST(PrefixPushes, AreBoundedAndEachSessionHasItsOwn) {
  PrefillOptions options = SchedulerHarness::Options();
  options.max_pushes = 2;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.OpenSession(2);
  const v1::SequenceSpec spec = Spec(70);
  HandOver(&h, 5, spec);
  h.Push(1, h.PushOf(5, 70, spec, 4));
  h.Push(2, h.PushOf(5, 70, spec, 4));
  EXPECT_THAT(h.transfers, SizeIs(2));
  h.Push(1, h.PushOf(6, 71, spec, 4));
  const auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].push_refused().attempt_id(), 6u);
  EXPECT_EQ(events[0].push_refused().landing_id(), 71u);
  EXPECT_EQ(events[0].push_refused().reason(), "2 pushes are under way");
  EXPECT_FALSE(events[0].push_refused().gone());
  h.Acknowledge(h.transfers.begin()->first);
  h.Push(1, h.PushOf(6, 71, spec, 4));
  EXPECT_THAT(h.TakeEvents(1), IsEmpty());
  EXPECT_THAT(h.TakeEvents(2), IsEmpty());
}

TEST_F(PrefixPushTest, ADrainEndsWithThePushesThatRunAndTakesNoMore) {
  HandOver(5, spec_);
  h.Push(1, h.PushOf(9, 70, spec_, 4));
  h.Feed(DrainStarted{});
  EXPECT_FALSE(h.scheduler.idle());
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(Refusal(), "the prefill worker drains");
  EXPECT_FALSE(gone_);
  h.Acknowledge(h.transfers.begin()->first);
  EXPECT_TRUE(h.scheduler.idle());
  EXPECT_TRUE(h.AllFreeOrCached());
  EXPECT_EQ(cached(), 4u);
}

TEST_F(PrefixPushTest, PromptsTakeTheRoomOfWhatIsCached) {
  HandOver(5, spec_);
  h.Start(1, 6, toy::MakeSpec(64 * 16, 10));
  EXPECT_EQ(cached(), 0u);
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 64u) << "the whole pool";
  EXPECT_EQ(h.scheduler.prefixes().evicted(), 4u);
}

TEST_F(PrefixPushTest, NoMoreGoesThanAPromptNeeds) {
  HandOver(5, spec_);
  h.Start(1, 6, toy::MakeSpec(62 * 16, 10));
  EXPECT_EQ(cached(), 2u);
}

TEST_F(PrefixPushTest, NothingGoesForAPromptThatMustWaitAnyway) {
  HandOver(5, spec_);
  h.Start(1, 6, toy::MakeSpec(50 * 16, 10));
  h.Start(1, 7, toy::MakeSpec(20 * 16, 10));
  EXPECT_EQ(h.scheduler.Load().waiting_sequences(), 1u);
  EXPECT_EQ(cached(), 4u);
}

TEST_F(PrefixPushTest, APromptWaitsForAPushToEnd) {
  HandOver(5, spec_);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  h.Start(1, 6, toy::MakeSpec(61 * 16, 10));
  EXPECT_FALSE(h.step.has_value());
  EXPECT_EQ(sending(), 4u);
  h.Acknowledge(h.transfers.begin()->first);
  ASSERT_TRUE(h.step.has_value());
  EXPECT_EQ(cached(), 3u);
}

TEST_F(PrefixPushTest, ThePrefixOfAnotherPromptSharesItsBlocks) {
  HandOver(5, spec_);
  HandOver(6, Spec(100));
  EXPECT_EQ(cached(), 6u);
  HandOver(7, Spec(100, "another"));
  EXPECT_EQ(cached(), 12u);
}

TEST_F(PrefixPushTest, AShortPromptLeavesNothing) {
  HandOver(5, Spec(15));
  EXPECT_TRUE(h.AllFree());
}

TEST_F(PrefixPushTest, NothingIsKeptOfComputeThatIsNotTrusted) {
  HandOver(5, spec_);
  HandOver(6, Spec(20, "another"));
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  const TransferId push = h.transfers.begin()->first;
  h.Start(1, 20, toy::MakeSpec(40, 10));
  h.FinishAllSteps();
  const TransferId late = h.transfers.rbegin()->first;
  for (uint64_t attempt = 7; attempt <= 9; ++attempt) {
    h.Start(1, attempt, toy::MakeSpec(10, 10));
    h.FailStep(absl::InternalError("NaN in layer 3"));
    h.CloseTransfer(h.transfers.rbegin()->first);
  }
  ASSERT_FALSE(h.scheduler.healthy());
  EXPECT_EQ(cached(), 0u);
  EXPECT_TRUE(h.transfers.at(push).aborted);
  h.CloseTransfer(push);
  h.Acknowledge(late);
  EXPECT_TRUE(h.AllFree()) << "nor of what was handed over since";
  h.TakeEvents(1);
  h.Push(1, h.PushOf(5, 70, spec_, 4));
  EXPECT_THAT(Refusal(), HasSubstr("could not be computed"));
  EXPECT_FALSE(gone_);
}

TEST_F(PrefixPushTest, AProbeTakesTheRoomOfWhatIsCached) {
  HandOver(5, Spec(64 * 16));
  EXPECT_EQ(h.ledger().free, 0u) << "the whole pool is cached";
  for (uint64_t attempt = 7; attempt <= 9; ++attempt) {
    h.Start(1, attempt, toy::MakeSpec(10, 10));
    h.FailStep(absl::InternalError("NaN in layer 3"));
    h.CloseTransfer(h.transfers.rbegin()->first);
  }
  for (int i = 0; i < 40 && !h.step.has_value(); ++i) {
    h.now += milliseconds(100);
    h.Feed(Tick{});
  }
  ASSERT_TRUE(h.step.has_value());
  h.FinishStep();
  EXPECT_TRUE(h.scheduler.healthy());
}

TEST_F(PrefixPushTest, APushOfALostSessionIsCounted) {
  HandOver(5, spec_);
  h.Push(3, h.PushOf(5, 70, spec_, 4));
  EXPECT_EQ(h.scheduler.counters().stale_messages, 1u);
  EXPECT_THAT(h.transfers, IsEmpty());
}

}  // namespace
}  // namespace baton::prefill
