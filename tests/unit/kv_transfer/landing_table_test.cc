#include "kv_transfer/landing_table.h"

#include <gtest/gtest.h>

#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

constexpr MonotonicTime kNow{std::chrono::hours(1)};
constexpr LinkId kLink(5);

class LandingTableTest : public ::testing::Test {
 protected:
  LandingTableTest() : options(TinyOptions(2)), table(&options) {
    const LandingSpec spec = SpecFor(&memory, 40, 2);
    const Ticket ticket = IssueTicket(spec, options, "fake", "here");
    table.Add(ticket, spec, kNow + spec.timeout);
    const TransferTerms terms = *CheckTicket(ticket, options, "fake");
    key = terms.key;
    key.transfer = TransferId(9);
    begin = terms.begin;
  }

  TransferOptions options;
  LandingTable table;
  TinyMemory memory{3, 1};
  TransferKey key;
  Begin begin;
};

TEST_F(LandingTableTest, GoesThroughItsStates) {
  Landing* landing = table.Find(key.landing);
  ASSERT_NE(landing, nullptr);
  EXPECT_EQ(landing->state(), LandingState::kReserved);
  EXPECT_EQ(table.Find(kLink, key), nullptr) << "not begun";
  ASSERT_EQ(*table.Redeem(kLink, key, begin, kNow), landing);
  EXPECT_EQ(landing->state(), LandingState::kReceiving);
  EXPECT_EQ(table.Find(kLink, key), landing);
  for (uint32_t i = 0; i < 3; ++i) {
    const Frame frame{i, i, 0, 2, i < 2 ? 16u : 8u};
    const auto place = landing->PostFrame(frame, kTinyLayout.block_bytes());
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(place->data(), memory.block(i).data());
    EXPECT_FALSE(landing->TryVerify());
    landing->ReceiveEnded();
    landing->FrameVerified(frame, place->size());
  }
  EXPECT_FALSE(landing->TryVerify()) << "no seal";
  ASSERT_TRUE(landing->PostSeal(SealMark{3}, 0).ok());
  EXPECT_TRUE(landing->TryVerify());
  EXPECT_EQ(landing->state(), LandingState::kVerified);
  table.Remove(key.landing);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.NextDeadline(), kNever);
}

TEST_F(LandingTableTest, FindsOnlyTheTransferThatRedeemed) {
  ASSERT_TRUE(table.Redeem(kLink, key, begin, kNow).ok());
  TransferKey other = key;
  other.nonce[3] ^= std::byte{1};
  EXPECT_EQ(table.Find(kLink, other), nullptr);
  other = key;
  other.transfer = TransferId(10);
  EXPECT_EQ(table.Find(kLink, other), nullptr);
  EXPECT_EQ(table.Find(LinkId(6), key), nullptr);
  EXPECT_EQ(table.OnLink(kLink), std::vector<LandingId>{key.landing});
  EXPECT_TRUE(table.OnLink(LinkId(6)).empty());
}

TEST_F(LandingTableTest, ASecondBeginIsRefusedACopyIsNot) {
  ASSERT_TRUE(table.Redeem(kLink, key, begin, kNow).ok());
  EXPECT_EQ(*table.Redeem(kLink, key, begin, kNow), nullptr);
  EXPECT_TRUE(absl::IsAlreadyExists(
      table.Redeem(LinkId(6), key, begin, kNow).status()));
  TransferKey other = key;
  other.transfer = TransferId(10);
  EXPECT_TRUE(
      absl::IsAlreadyExists(table.Redeem(kLink, other, begin, kNow).status()));
}

TEST_F(LandingTableTest, ARefusedBeginLeavesTheTicketGood) {
  Begin wrong = begin;
  wrong.fingerprint[0] ^= std::byte{1};
  EXPECT_TRUE(
      absl::IsInvalidArgument(table.Redeem(kLink, key, wrong, kNow).status()));
  wrong = begin;
  wrong.block_bytes += 1;
  EXPECT_EQ(table.Redeem(kLink, key, wrong, kNow).status().message(),
            "block_bytes: got 257, allowed 256");
  wrong = begin;
  wrong.block_count = 0;
  EXPECT_EQ(table.Redeem(kLink, key, wrong, kNow).status().message(),
            "block_count: got 0, allowed 3");
  EXPECT_TRUE(table.Redeem(kLink, key, begin, kNow).ok());
}

TEST_F(LandingTableTest, QuarantineEndsWhenBothAreTrue) {
  Landing* landing = *table.Redeem(kLink, key, begin, kNow);
  ASSERT_TRUE(
      landing->PostFrame({0, 0, 0, 2, 16}, kTinyLayout.block_bytes()).ok());
  landing->GiveUp();
  EXPECT_FALSE(landing->quiet());
  landing->HolderFinished();
  EXPECT_FALSE(landing->over());
  landing->ReceiveEnded();
  EXPECT_TRUE(landing->over());
}

TEST_F(LandingTableTest, PopsWhatIsDue) {
  EXPECT_EQ(table.PopDue(kNow), nullptr);
  EXPECT_EQ(table.NextDeadline(), kNow + std::chrono::seconds(10));
  EXPECT_EQ(table.PopDue(kNow + std::chrono::seconds(10)),
            table.Find(key.landing));
  EXPECT_EQ(table.PopDue(kNow + std::chrono::seconds(10)), nullptr);
}

TEST_F(LandingTableTest, TicketsDiffer) {
  std::set<std::string> nonces;
  for (int i = 0; i < 100; ++i) {
    const Ticket ticket =
        IssueTicket(SpecFor(&memory, 40, 2), options, "fake", "here");
    EXPECT_NE(ticket.landing_id(), 0u);
    nonces.insert(ticket.nonce());
  }
  EXPECT_EQ(nonces.size(), 100u);
}

}  // namespace
}  // namespace baton::transfer
