// Peers that guess, and links that carry nothing any more.
#include <gtest/gtest.h>

#include <random>

#include "kv_transfer/landing_table.h"
#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::seconds;

class TransferCoreAbuseTest : public ::testing::Test, public CoreFixture {
 protected:
  // Whether the link is still open after one more guess over it.
  bool Guess(LinkId link) {
    TransferKey guess;
    guess.landing = LandingId(++guesses_);
    Begin begin;
    begin.epoch = WorkerEpoch(2);
    const EncodedHeader header =
        EncodeHeader({guess, Recipient::kReceiver, begin}, {});
    net.Inject(holder.transport, link,
               {header.span().begin(), header.span().end()}, {});
    Flow();
    return net.IsOpen(holder.transport, link);
  }
  uint64_t GuessUntilCutOff() {
    const LinkId link = *holder.transport->Connect("receiver");
    uint64_t count = 1;
    while (Guess(link)) ++count;
    return count;
  }

 private:
  uint64_t guesses_ = 0;
};

// CASES 3.112: connecting again does not buy more guesses.
TEST_F(TransferCoreAbuseTest, APeerThatGuessesAndReconnectsIsLimited) {
  uint64_t guesses = 0;
  for (int i = 0; i < 100; ++i) guesses += GuessUntilCutOff();
  EXPECT_EQ(guesses, 1024u + 96u) << "four links of 256, then one each";
  EXPECT_EQ(receiver.core.counters().cut_off_peers, 100u);
  EXPECT_EQ(receiver.core.counters().refused_begins, guesses);
  EXPECT_EQ(receiver.core.open_links(), 0u);
  // Nobody who has a ticket is harmed, meanwhile or later.
  Open();
  Start();
  PushAllAndSeal();
  Flow();
  EXPECT_EQ(receiver.All<LandingVerified>().size(), 1u);
  EXPECT_TRUE(source == target);
  now += seconds(2);
  EXPECT_EQ(GuessUntilCutOff(), 256u);
}

TEST_F(TransferCoreAbuseTest, AKnownPeerIsNotJudgedByStrangers) {
  Open();
  const TransferId good = Start();
  Flow();
  for (int i = 0; i < 20; ++i) GuessUntilCutOff();
  ticket.set_landing_id(ticket.landing_id() ^ 1);
  Start();
  Flow();
  ASSERT_EQ(holder.All<TransferFailed>().size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(holder.All<TransferFailed>()[0].status));
  transfer = good;
  PushAllAndSeal();
  Flow();
  EXPECT_EQ(receiver.All<LandingVerified>().size(), 1u);
  EXPECT_TRUE(source == target);
}

// CASES 3.112, 3.113.
TEST(LandingGuessTest, AMillionRandomIdsFindNothing) {
  const TransferOptions options = TinyOptions(2);
  LandingTable table(&options);
  TinyMemory memory(3, 1);
  const LandingSpec spec = SpecFor(&memory, 40, 2);
  constexpr MonotonicTime kNow{std::chrono::hours(1)};
  const Ticket ticket = IssueTicket(spec, options, "fake", "here");
  table.Add(ticket, spec, kNow + spec.timeout);
  const TransferTerms terms = *CheckTicket(ticket, options, "fake");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    TransferKey guess = terms.key;
    // Half of them know the landing, the others the nonce.
    if (i % 2 == 0) {
      guess.landing = LandingId(random());
    } else {
      for (std::byte& b : guess.nonce) b = static_cast<std::byte>(random());
    }
    const auto landing = table.Redeem(LinkId(1), guess, terms.begin, kNow);
    ASSERT_TRUE(absl::IsNotFound(landing.status()));
    ASSERT_EQ(landing.status().message(), "landing: no such landing is open");
  }
  EXPECT_TRUE(table.Redeem(LinkId(1), terms.key, terms.begin, kNow).ok());
}

// CASES 3.113: whichever bit of a ticket is flipped on its way, it is refused,
// unless the bit says nothing about which blocks go where.
TEST_F(TransferCoreAbuseTest, EverySingleBitOfATicketMatters) {
  Open();
  const size_t bits = 8 * ticket.SerializeAsString().size();
  size_t refused = 0;
  for (size_t bit = 0; bit < bits; ++bit) {
    SCOPED_TRACE(bit);
    CoreFixture f;
    const Ticket good = f.Open();
    std::string bytes = good.SerializeAsString();
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    Ticket bad;
    if (!bad.ParseFromString(bytes)) {
      ++refused;
      continue;
    }
    const auto opened =
        f.holder.core.OpenTransfer(bad, f.now + seconds(1), f.now);
    if (!opened.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
      ++refused;
      continue;
    }
    f.transfer = *opened;
    f.PushAllAndSeal();
    f.Flow();
    if (!f.receiver.All<LandingVerified>().empty()) {
      EXPECT_TRUE(f.source == f.target);
      bad.set_timeout_ms(good.timeout_ms());
      bad.DiscardUnknownFields();
      EXPECT_EQ(bad.SerializeAsString(), good.SerializeAsString());
      continue;
    }
    ++refused;
    f.Settle();
    EXPECT_EQ(f.holder.All<TransferFailed>().size(), 1u);
    EXPECT_EQ(f.receiver.All<LandingFailed>().size(), 1u) << "unused";
    EXPECT_TRUE(f.AllOver());
  }
  EXPECT_GT(refused, bits * 9 / 10);
}

// CASES 1.26, 2.24: both sides time out on their own, whenever the cut comes.
TEST_F(TransferCoreAbuseTest, TheLinkIsCutBothWays) {
  for (size_t delivered = 0; delivered <= 5; ++delivered) {
    SCOPED_TRACE(delivered);
    CoreFixture f;
    f.Open();
    f.Start();
    f.PushAllAndSeal();
    f.Poll();
    for (size_t i = 0; i < delivered; ++i) {
      f.net.Deliver(0);
      f.receiver.core.Poll(f.now, &f.receiver.events);
    }
    const bool complete = delivered == 5;
    const MonotonicTime end = f.now + seconds(12);
    while (!f.AllOver() && f.now < end) {
      f.net.wire.clear();  // nothing arrives, and nobody is told
      f.Poll();
      f.net.wire.clear();
      f.now += std::chrono::milliseconds(100);
    }
    EXPECT_TRUE(f.AllOver()) << "after deadline and grace";
    EXPECT_EQ(f.receiver.All<LandingVerified>().size(), complete ? 1u : 0u);
    EXPECT_EQ(f.receiver.All<LandingClosed>().size(), complete ? 0u : 1u);
    EXPECT_EQ(f.holder.All<TransferFailed>().size(), 1u);
    EXPECT_EQ(f.holder.All<TransferClosed>().size(), 1u);
  }
}

// CASES 1.31, 2.30: a header without its payload, then silence.
TEST_F(TransferCoreAbuseTest, ABlockThatNeverCompletesIsNeverSeen) {
  Open();
  Start();
  PushAllAndSeal();
  Poll();
  net.Deliver(0);
  const auto late = net.DeliverHeader(0);
  const TinyMemory before = target;
  net.wire.clear();
  now += seconds(10);
  Poll();
  ASSERT_EQ(receiver.All<LandingFailed>().size(), 1u);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(receiver.All<LandingFailed>()[0].status));
  EXPECT_TRUE(receiver.All<LandingClosed>().empty())
      << "the block may still be written";
  EXPECT_TRUE(target == before);
  Settle();
  EXPECT_EQ(receiver.All<LandingClosed>().size(), 1u);
  EXPECT_TRUE(receiver.All<LandingVerified>().empty());
  EXPECT_TRUE(AllOver());
}

}  // namespace
}  // namespace baton::transfer
