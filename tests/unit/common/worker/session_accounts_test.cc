#include "common/worker/session_accounts.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::milliseconds;

const MonotonicTime kStart{std::chrono::hours(1)};

TEST(SessionAccounts, GrantIsTwoStepsBeyondWhatWasReturned) {
  SessionAccounts accounts({.step_token_budget = 64});
  accounts.Open(SessionId(1));
  auto due = accounts.Due({}, kStart);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 128u);
  accounts.ReturnTokens(SessionId(1), 100, 100);
  due = accounts.Due({}, kStart + milliseconds(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 228u);
}

TEST(SessionAccounts, ShortPromptsHaveTheirOwnCredit) {
  SessionAccounts accounts({.step_token_budget = 64});
  accounts.Open(SessionId(1));
  accounts.Due({}, kStart);
  accounts.ReturnTokens(SessionId(1), 64, 10);
  accounts.ReturnTokens(SessionId(1), 65, 20);
  const auto due = accounts.Due({}, kStart + milliseconds(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].load.granted_short_prefill_tokens(), 138u);
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 148u);
}

TEST(SessionAccounts, AGrantIsWorthTwoStepsAsTheyArePredicted) {
  SessionAccounts accounts({.step_token_budget = 64});
  accounts.Open(SessionId(1));
  v1::WorkerLoad load;
  load.set_step_prompt_tokens(24);
  auto due = accounts.Due(load, kStart);
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 48u);
  EXPECT_EQ(due[0].load.granted_short_prefill_tokens(), 48u);
  load.set_step_prompt_tokens(32);
  due = accounts.Due(load, kStart + milliseconds(10));
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 64u);
}

TEST(SessionAccounts, AReportSaysWhichAttemptsItKnowsOf) {
  SessionAccounts accounts({});
  accounts.Open(SessionId(1));
  accounts.Open(SessionId(2));
  accounts.Asked(SessionId(1), AttemptId(5));
  accounts.Asked(SessionId(1), AttemptId(4));  // repeated
  accounts.Asked(SessionId(3), AttemptId(9));
  auto due = accounts.Due({}, kStart);
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due[0].load.newest_attempt(), 5u);
  EXPECT_EQ(due[1].load.newest_attempt(), 0u);
  accounts.Asked(SessionId(2), AttemptId(6));
  due = accounts.Due({}, kStart + milliseconds(10));
  ASSERT_EQ(due.size(), 1u) << "a change that is told";
  EXPECT_EQ(due[0].load.newest_attempt(), 6u);
}

TEST(SessionAccounts, SessionsShareAndAGrantIsNeverTakenBack) {
  SessionAccounts accounts({.step_token_budget = 64});
  accounts.Open(SessionId(1));
  accounts.Due({}, kStart);
  accounts.Open(SessionId(2));
  auto due = accounts.Due({}, kStart + milliseconds(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].session, SessionId(2));
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 64u);
  accounts.ReturnTokens(SessionId(1), 100, 50);
  EXPECT_TRUE(accounts.Due({}, kStart + milliseconds(20)).empty())
      << "50 + 64 is below the 128 that session 1 has already";
  accounts.ReturnTokens(SessionId(1), 100, 50);
  due = accounts.Due({}, kStart + milliseconds(30));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].load.granted_prefill_tokens(), 164u);
}

TEST(SessionAccounts, ChangesAreThrottledAndIdleOnesRepeated) {
  SessionAccounts accounts({});
  accounts.Open(SessionId(1));
  v1::WorkerLoad load;
  EXPECT_EQ(accounts.Due(load, kStart).size(), 1u);
  EXPECT_TRUE(accounts.Due(load, kStart + milliseconds(500)).empty());
  EXPECT_EQ(accounts.NextDeadline(), kStart + milliseconds(1000));
  EXPECT_EQ(accounts.Due(load, kStart + milliseconds(1000)).size(), 1u);
  load.set_free_blocks(7);
  EXPECT_TRUE(accounts.Due(load, kStart + milliseconds(1001)).empty());
  EXPECT_EQ(accounts.NextDeadline(), kStart + milliseconds(1002));
  EXPECT_EQ(accounts.Due(load, kStart + milliseconds(1002)).size(), 1u);
}

TEST(SessionAccounts, UnknownAndClosedSessionsAreIgnored) {
  SessionAccounts accounts({});
  accounts.ReturnTokens(SessionId(9), 5, 5);
  EXPECT_TRUE(accounts.Due({}, kStart).empty());
  EXPECT_EQ(accounts.NextDeadline(), kNever);
  accounts.Open(SessionId(1));
  EXPECT_TRUE(accounts.Has(SessionId(1)));
  accounts.Close(SessionId(1));
  EXPECT_FALSE(accounts.Has(SessionId(1)));
  EXPECT_TRUE(accounts.Due({}, kStart).empty());
}

}  // namespace
}  // namespace baton
