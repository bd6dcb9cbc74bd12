#include "router/request_flow/served_account.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

MonotonicTime At(int ms) {
  return MonotonicTime(std::chrono::milliseconds(ms));
}

class ServedAccountTest : public ::testing::Test {
 protected:
  ServedAccountTest() {
    prefill_.hello.set_worker_id("p");
    decode_.hello.set_worker_id("d");
  }

  WorkerView prefill_;
  WorkerView decode_;
  Candidate pair_{&prefill_, &decode_, "why"};
  ServedAccount account_{At(0)};
};

TEST_F(ServedAccountTest, PhasesSumToTheWholeEvenWithReplays) {
  account_.Dispatched(pair_, "policy", At(5));
  account_.Replayed();
  account_.Dispatched(pair_, "policy", At(20));
  account_.Token(false, At(50));
  account_.Replayed();
  account_.Dispatched(pair_, "policy", At(60));
  account_.Landed({}, At(90));
  account_.Token(false, At(100));
  const v1::Served served = account_.Result("id");
  EXPECT_DOUBLE_EQ(served.queue_ms(), 20);
  EXPECT_DOUBLE_EQ(served.prefill_ms(), 30);
  EXPECT_DOUBLE_EQ(served.transfer_ms(), 40);
  EXPECT_DOUBLE_EQ(served.decode_ms(), 10);
  EXPECT_EQ(served.replays(), 2u);
  EXPECT_EQ(served.reason(), "why, policy");
}

TEST_F(ServedAccountTest, LandingBeforeTheFirstTokenIsNotNegative) {
  account_.Dispatched(pair_, "policy", At(1));
  account_.Landed({}, At(9));
  account_.Token(false, At(10));
  const v1::Served served = account_.Result("id");
  EXPECT_DOUBLE_EQ(served.transfer_ms(), 0);
  EXPECT_DOUBLE_EQ(served.decode_ms(), 0);
}

TEST_F(ServedAccountTest, PrefillIsCountedEvenIfDecodeEndsFirst) {
  account_.Dispatched(pair_, "policy", At(1));
  account_.Done({});
  v1::FirstTokens first;
  first.set_cached_tokens(16);
  first.set_chunks(3);
  account_.FirstTokens(first);
  EXPECT_EQ(account_.Result("").prefill_chunks(), 3u);
  EXPECT_EQ(account_.cached_tokens(), 16u);
}

TEST_F(ServedAccountTest, MovedBytesAddUpOverAttempts) {
  v1::Landed landed;
  landed.set_bytes(10);
  landed.set_blocks(1);
  landed.set_transport("ucx");
  account_.Landed(landed, At(1));
  account_.Landed(landed, At(2));
  EXPECT_EQ(account_.Result("").kv_bytes_moved(), 20u);
  EXPECT_EQ(account_.Result("").kv_blocks_moved(), 2u);
  EXPECT_EQ(account_.Result("").transport(), "ucx");
}

TEST_F(ServedAccountTest, StepsAndGuessesAddUpOverAttempts) {
  v1::AttemptDone done;
  done.set_steps(7);
  done.set_drafted_tokens(5);
  done.set_accepted_tokens(3);
  account_.Done(done);
  account_.Done(done);
  const v1::Served served = account_.Result("");
  EXPECT_EQ(served.decode_steps(), 14u);
  EXPECT_EQ(served.drafted_tokens(), 10u);
  EXPECT_EQ(served.accepted_tokens(), 6u);
}

TEST_F(ServedAccountTest, CachedTokensAreThoseOfTheFirstPrefill) {
  v1::FirstTokens first;
  first.set_cached_tokens(32);
  account_.FirstTokens(first);
  v1::AttemptDone done;
  done.set_cached_tokens(64);
  account_.Done(done);
  EXPECT_EQ(account_.cached_tokens(), 32u);
}

}  // namespace
}  // namespace baton::router
