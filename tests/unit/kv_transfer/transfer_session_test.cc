#include "kv_transfer/transfer_session.h"

#include <gtest/gtest.h>

#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

TransferSession MakeSession(uint32_t tokens) {
  TransferTerms terms;
  terms.key.transfer = TransferId(1);
  terms.begin.token_count = tokens;
  terms.begin.block_count = (tokens + 15) / 16;
  terms.begin.block_bytes = kTinyLayout.block_bytes();
  return TransferSession(terms, LinkId(1), kTinyLayout.layers);
}

TEST(TransferSessionTest, GoesThroughItsStates) {
  const std::vector<std::byte> block(kTinyLayout.block_bytes());
  TransferSession session = MakeSession(20);
  EXPECT_EQ(session.state(), SessionState::kOpen);
  EXPECT_FALSE(session.HasNext());
  ASSERT_TRUE(session.Push(1, block, 4).ok());
  EXPECT_EQ(session.state(), SessionState::kSending);
  ASSERT_TRUE(session.Push(0, block, 16).ok());
  ASSERT_TRUE(session.Seal({}).ok());
  EXPECT_EQ(session.state(), SessionState::kSealed);
  EXPECT_FALSE(session.Acknowledge(Ack{2})) << "the seal is not out yet";
  EXPECT_EQ(std::get<Frame>(session.TakeNext().body), (Frame{0, 1, 0, 2, 4}));
  EXPECT_EQ(std::get<Frame>(session.TakeNext().body), (Frame{1, 0, 0, 2, 16}));
  EXPECT_EQ(std::get<SealMark>(session.TakeNext().body), SealMark{2});
  EXPECT_FALSE(session.HasNext());
  EXPECT_FALSE(session.Acknowledge(Ack{1}));
  EXPECT_TRUE(session.Acknowledge(Ack{2}));
  EXPECT_EQ(session.state(), SessionState::kAcked);
}

TEST(TransferSessionTest, IsOverWhenNothingReadsAndTheReceiverKnows) {
  const std::vector<std::byte> block(kTinyLayout.block_bytes());
  TransferSession session = MakeSession(16);
  ASSERT_TRUE(session.Push(0, block, 16).ok());
  session.TakeNext();
  session.SendStarted();
  session.GiveUp(/*answered=*/false);
  EXPECT_EQ(session.state(), SessionState::kAborting);
  EXPECT_FALSE(session.over());
  session.SendEnded();
  EXPECT_FALSE(session.over());
  session.ReceiverAnswered();
  EXPECT_TRUE(session.over());
  EXPECT_TRUE(absl::IsFailedPrecondition(session.Push(0, block, 16)));
  EXPECT_TRUE(absl::IsFailedPrecondition(session.Seal({})));
}

TEST(TransferSessionTest, GivingUpDropsWhatIsQueued) {
  const std::vector<std::byte> block(kTinyLayout.block_bytes());
  TransferSession session = MakeSession(16);
  ASSERT_TRUE(session.Push(0, block, 16).ok());
  ASSERT_TRUE(session.Seal({}).ok());
  session.GiveUp(true);
  EXPECT_FALSE(session.HasNext());
  EXPECT_TRUE(session.over());
}

TEST(TransferSessionTest, StatesHaveNames) {
  EXPECT_EQ(SessionStateName(SessionState::kOpen), "OPEN");
  EXPECT_EQ(SessionStateName(SessionState::kSending), "SENDING");
  EXPECT_EQ(SessionStateName(SessionState::kSealed), "SEALED");
  EXPECT_EQ(SessionStateName(SessionState::kAcked), "ACKED");
  EXPECT_EQ(SessionStateName(SessionState::kAborting), "ABORTING");
}

}  // namespace
}  // namespace baton::transfer
