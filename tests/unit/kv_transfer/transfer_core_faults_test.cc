// For every message of the protocol: what if it never arrives, arrives twice,
// arrives late? And the same for aborts, cancels, lost links, in every phase.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// What holds of every ending, whatever happened before.
void ExpectProperEnd(const CoreFixture& f) {
  EXPECT_TRUE(f.AllOver());
  const size_t verified = f.receiver.All<LandingVerified>().size();
  const size_t landing_failed = f.receiver.All<LandingFailed>().size();
  const size_t landing_closed = f.receiver.All<LandingClosed>().size();
  EXPECT_EQ(verified + landing_closed, 1u) << "one ending";
  EXPECT_LE(landing_failed, landing_closed);
  const size_t acked = f.holder.All<TransferAcked>().size();
  const size_t transfer_failed = f.holder.All<TransferFailed>().size();
  const size_t transfer_closed = f.holder.All<TransferClosed>().size();
  EXPECT_EQ(acked + transfer_closed, 1u) << "one ending";
  EXPECT_LE(transfer_failed, transfer_closed);
  EXPECT_LE(acked, verified) << "acknowledged without being verified";
  if (verified == 1) {
    EXPECT_TRUE(f.source == f.target);
    EXPECT_EQ(
        f.receiver.All<LandingVerified>()[0].seal.first_tokens(0).token_id(),
        4711u);
  }
  // Failed comes before Closed, and nothing after an ending.
  if (!f.receiver.events.empty()) {
    EXPECT_FALSE(
        std::holds_alternative<LandingFailed>(f.receiver.events.back()));
  }
  if (!f.holder.events.empty()) {
    EXPECT_FALSE(
        std::holds_alternative<TransferFailed>(f.holder.events.back()));
  }
}

// A transfer up to the point where all its messages are on the wire: BEGIN,
// three frames, SEAL.
void ToTheWire(CoreFixture* f) {
  f->Open();
  f->Start();
  f->PushAllAndSeal();
  f->Poll();
  ASSERT_EQ(f->net.wire.size(), 5u);
}

class EveryMessageTest : public ::testing::TestWithParam<size_t> {};

TEST_P(EveryMessageTest, NeverArrives) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.Drop(GetParam());
  const MonotonicTime start = f.now;
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_TRUE(f.receiver.All<LandingVerified>().empty());
  const auto failed = f.receiver.All<LandingFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(failed[0].status));
  EXPECT_EQ(f.holder.All<TransferFailed>().size(), 1u);
  EXPECT_LE(f.now - start, seconds(12)) << "deadline and grace";
}

TEST_P(EveryMessageTest, ArrivesTwice) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.Duplicate(GetParam());
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_EQ(f.receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(f.holder.All<TransferAcked>().size(), 1u);
  EXPECT_GE(f.receiver.core.counters().stale_messages +
                f.receiver.core.counters().refused_begins,
            1u);
}

TEST_P(EveryMessageTest, ArrivesTwiceAtOnce) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.Duplicate(GetParam());
  Packet copy = f.net.wire.back();
  f.net.wire.pop_back();
  f.net.wire.insert(f.net.wire.begin() + GetParam() + 1, std::move(copy));
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_EQ(f.receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(f.receiver.core.counters().stale_messages, 1u);
}

TEST_P(EveryMessageTest, ArrivesLate) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.ToTheEnd(GetParam());
  f.Settle();
  ExpectProperEnd(f);
  // Order does not matter, except that nothing is heeded before BEGIN.
  EXPECT_EQ(f.receiver.All<LandingVerified>().size(), GetParam() > 0 ? 1u : 0u);
}

TEST_P(EveryMessageTest, ArrivesAfterTheEnd) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.Duplicate(GetParam());
  Packet late = f.net.wire.back();
  f.net.wire.pop_back();
  f.Settle();
  ExpectProperEnd(f);
  ASSERT_EQ(f.holder.All<TransferAcked>().size(), 1u);
  const size_t told = f.receiver.events.size();
  const TinyMemory before = f.target;
  f.net.wire.push_back(std::move(late));
  f.Settle();
  EXPECT_EQ(f.receiver.events.size(), told);
  EXPECT_EQ(f.holder.events.size(), 1u);
  EXPECT_TRUE(f.target == before);
}

TEST_P(EveryMessageTest, TheLinkIsLostBeforeIt) {
  CoreFixture f;
  ToTheWire(&f);
  const LinkId link = f.net.wire[0].from_link;
  for (size_t i = 0; i < GetParam(); ++i) f.net.Deliver(0);
  f.Poll();
  f.holder.transport->Close(link);
  f.Settle();
  ExpectProperEnd(f);
  const auto failed = f.holder.All<TransferFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(failed[0].status));
  if (GetParam() > 0) {
    EXPECT_TRUE(
        absl::IsUnavailable(f.receiver.All<LandingFailed>().at(0).status));
  }
}

TEST_P(EveryMessageTest, TheHolderAbortsBeforeIt) {
  CoreFixture f;
  ToTheWire(&f);
  for (size_t i = 0; i < GetParam(); ++i) f.net.Deliver(0);
  f.Poll();
  f.holder.core.Abort(f.transfer, f.now);
  f.holder.core.Abort(f.transfer, f.now);
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_TRUE(f.holder.All<TransferFailed>().empty()) << "it was asked for";
  EXPECT_EQ(f.net.closes(), 0u);
}

TEST_P(EveryMessageTest, TheReceiverCancelsBeforeIt) {
  CoreFixture f;
  ToTheWire(&f);
  for (size_t i = 0; i < GetParam(); ++i) f.net.Deliver(0);
  f.Poll();
  f.receiver.core.CancelLanding(f.landing(), f.now);
  f.receiver.core.CancelLanding(f.landing(), f.now);
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_TRUE(f.receiver.All<LandingFailed>().empty()) << "it was asked for";
  const auto failed = f.holder.All<TransferFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_TRUE(absl::IsCancelled(failed[0].status) ||
              absl::IsNotFound(failed[0].status))
      << failed[0].status;
  EXPECT_EQ(f.net.closes(), 0u);
}

TEST_P(EveryMessageTest, BothGiveUpAtOnce) {
  CoreFixture f;
  ToTheWire(&f);
  for (size_t i = 0; i < GetParam(); ++i) f.net.Deliver(0);
  f.Poll();
  f.holder.core.Abort(f.transfer, f.now);
  f.receiver.core.CancelLanding(f.landing(), f.now);
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_EQ(f.net.closes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(BeginFramesSeal, EveryMessageTest,
                         ::testing::Range<size_t>(0, 5));

// --- the answers ---

TEST(AnswerTest, AckNeverArrives) {
  CoreFixture f;
  ToTheWire(&f);
  for (int i = 0; i < 5; ++i) f.net.Deliver(0);
  f.Poll();
  ASSERT_EQ(f.OfType(4).size(), 1u);
  f.net.Drop(f.OfType(4)[0]);
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_EQ(f.receiver.All<LandingVerified>().size(), 1u);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(f.holder.All<TransferFailed>().at(0).status));
}

TEST(AnswerTest, AckArrivesTwiceAndAfterAbort) {
  CoreFixture f;
  ToTheWire(&f);
  for (int i = 0; i < 5; ++i) f.net.Deliver(0);
  f.Poll();
  f.net.Duplicate(f.OfType(4)[0]);
  f.Settle();
  ExpectProperEnd(f);
  EXPECT_EQ(f.holder.All<TransferAcked>().size(), 1u);
  EXPECT_EQ(f.holder.core.counters().stale_messages, 1u);

  CoreFixture g;
  ToTheWire(&g);
  for (int i = 0; i < 5; ++i) g.net.Deliver(0);
  g.Poll();
  g.holder.core.Abort(g.transfer, g.now);
  g.Settle();
  ExpectProperEnd(g);
  EXPECT_EQ(g.receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(g.holder.All<TransferClosed>().size(), 1u);
}

TEST(AnswerTest, AnAckTooEarlyIsNotBelieved) {
  CoreFixture f;
  f.Open();
  f.Start();
  ASSERT_TRUE(f.Push(0).ok());
  f.Poll();
  const LinkId link = f.net.wire[0].to_link;
  const EncodedHeader ack =
      EncodeHeader({f.key(), Recipient::kHolder, Ack{3}}, {});
  f.net.Inject(f.receiver.transport, link,
               {ack.span().begin(), ack.span().end()}, {});
  f.Flow();
  EXPECT_TRUE(f.holder.events.empty());
  EXPECT_EQ(f.holder.core.counters().stale_messages, 1u);
}

TEST(AnswerTest, RefusalTwiceIsOneFailure) {
  CoreFixture f;
  f.Open();
  f.ticket.set_landing_id(1);
  f.Start();
  f.Poll();
  f.net.Deliver(0);
  f.Poll();
  f.net.Duplicate(f.OfType(7)[0]);
  f.Flow();
  EXPECT_EQ(f.holder.All<TransferFailed>().size(), 1u);
  EXPECT_EQ(f.holder.All<TransferClosed>().size(), 1u);
}

TEST(AnswerTest, ABlockIsOutOfQuarantineOnlyWhenItsReceiveIsOver) {
  CoreFixture f;
  ToTheWire(&f);
  f.net.Deliver(0);
  const auto frame = f.net.DeliverHeader(0);
  f.Poll();
  f.holder.core.Abort(f.transfer, f.now);
  f.Flow();
  EXPECT_EQ(f.receiver.All<LandingFailed>().size(), 1u);
  EXPECT_TRUE(f.receiver.All<LandingClosed>().empty())
      << "a posted receive may still write";
  EXPECT_TRUE(f.holder.All<TransferClosed>().empty())
      << "ABORT_ACK says that no receive is outstanding";
  frame();
  f.Flow();
  EXPECT_EQ(f.receiver.All<LandingClosed>().size(), 1u);
  EXPECT_EQ(f.holder.All<TransferClosed>().size(), 1u);
}

TEST(AnswerTest, WithoutAbortAckTheLinkIsTheFence) {
  for (const bool receiver_cancels : {true, false}) {
    CoreFixture f;
    ToTheWire(&f);
    f.net.Deliver(0);
    f.net.Deliver(0);
    f.Poll();
    f.net.wire.clear();  // from now on the peer is silent
    f.net.hold_closes = true;
    if (receiver_cancels) {
      f.receiver.core.CancelLanding(f.landing(), f.now);
    } else {
      f.holder.core.Abort(f.transfer, f.now);
    }
    f.Poll();
    f.net.wire.clear();
    f.now += milliseconds(999);
    f.Poll();
    EXPECT_EQ(f.net.closes(), 0u);
    f.now += milliseconds(1);
    f.Poll();
    EXPECT_EQ(f.net.closes(), 1u);
    const Party& party = receiver_cancels ? f.receiver : f.holder;
    EXPECT_TRUE(party.events.empty()) << "closing is not closed";
    EXPECT_EQ(party.core.counters().forced_closes, 1u);
    f.net.FinishClose();
    f.Poll();
    ExpectProperEnd(f);
  }
}

TEST(AnswerTest, AReservedLandingThatNobodyUsesExpires) {
  CoreFixture f;
  f.Open();
  EXPECT_EQ(f.receiver.core.NextDeadline(), f.now + seconds(10));
  f.now += seconds(10);
  f.Poll();
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(f.receiver.All<LandingFailed>().at(0).status));
  EXPECT_EQ(f.receiver.All<LandingClosed>().size(), 1u);
  f.Start();
  f.Settle();
  EXPECT_TRUE(absl::IsNotFound(f.holder.All<TransferFailed>().at(0).status));
}

TEST(AnswerTest, CancellingAReservedLandingClosesItAtOnce) {
  CoreFixture f;
  f.Open();
  f.receiver.core.CancelLanding(f.landing(), f.now);
  f.Poll();
  EXPECT_EQ(f.receiver.events.size(), 1u);
  EXPECT_EQ(f.receiver.All<LandingClosed>().size(), 1u);
  EXPECT_EQ(f.receiver.core.NextDeadline(), kNever);
}

TEST(AnswerTest, OneTransferFailsAloneOnItsLink) {
  CoreFixture f;
  TinyMemory other_target(3, 8);
  const Ticket other = *f.receiver.core.OpenLanding(
      SpecFor(&other_target, CoreFixture::kTokens, 2), f.now);
  f.Open();
  f.Start();
  f.PushAllAndSeal();
  const TransferId second =
      *f.holder.core.OpenTransfer(other, f.now + seconds(10), f.now);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        f.holder.core.PushBlock(second, i, f.source.block(i), i < 2 ? 16 : 8)
            .ok());
  }
  ASSERT_TRUE(f.holder.core.Seal(second, CoreFixture::SealOf(1)).ok());
  f.holder.core.Abort(f.transfer, f.now);
  f.Flow();
  EXPECT_EQ(f.holder.core.open_links(), 1u) << "one link per peer";
  EXPECT_EQ(f.holder.All<TransferAcked>().at(0).transfer, second);
  EXPECT_EQ(f.holder.All<TransferClosed>().at(0).transfer, f.transfer);
  EXPECT_TRUE(f.source == other_target);
}

// --- everything at once ---

class RandomFaultsTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomFaultsTest, EndsProperly) {
  std::mt19937 random(GetParam());
  const auto one_in = [&](uint32_t n) { return random() % n == 0; };
  for (int round = 0; round < 40; ++round) {
    CoreFixture f;
    f.Open();
    f.Start();
    uint32_t pushed = 0;
    std::vector<std::function<void()>> unfinished;
    for (int step = 0; step < 60; ++step) {
      if (pushed < CoreFixture::kBlocks && one_in(3))
        f.Push(pushed++).IgnoreError();
      if (pushed == CoreFixture::kBlocks && one_in(3)) {
        ++pushed;
        f.holder.core.Seal(f.transfer, CoreFixture::SealOf(4711)).IgnoreError();
      }
      f.Poll();
      if (!f.net.wire.empty() && one_in(2)) {
        const size_t some = one_in(4) ? random() % f.net.wire.size() : 0;
        if (one_in(25)) {
          f.net.Drop(some);
        } else if (one_in(25)) {
          f.net.Duplicate(some);
        } else {
          auto finish = f.net.DeliverHeader(some);
          f.Poll();
          if (one_in(3)) {
            unfinished.push_back(std::move(finish));
          } else {
            finish();
          }
        }
      }
      if (!unfinished.empty() && one_in(3)) {
        unfinished.back()();
        unfinished.pop_back();
      }
      if (one_in(80)) f.holder.core.Abort(f.transfer, f.now);
      if (one_in(80)) f.receiver.core.CancelLanding(f.landing(), f.now);
      if (one_in(20)) f.now += milliseconds(random() % 4000);
      if (one_in(150) && !f.net.wire.empty()) {
        f.net.wire[0].from->Close(f.net.wire[0].from_link);
      }
    }
    for (auto& finish : unfinished) finish();
    if (pushed <= CoreFixture::kBlocks) f.holder.core.Abort(f.transfer, f.now);
    f.Settle();
    ExpectProperEnd(f);
    ASSERT_FALSE(HasFailure()) << "seed " << GetParam() << " round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaultsTest,
                         ::testing::Range<uint32_t>(0, 60));

}  // namespace
}  // namespace baton::transfer
