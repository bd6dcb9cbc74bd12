// Too much work, and workers that do not get along with it: who waits, who is
// refused, who gets no work for a while.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/status.h"
#include "common/worker/sequence_spec.h"
#include "tests/unit/common/worker/toy_worker.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Duration kMinute = seconds(60);

uint64_t Rejected(CoreDriver& driver, Rejection why) {
  return driver.core().counters().rejected[static_cast<size_t>(why)];
}

// Credit for one more prefill.
void Grant(CoreDriver* driver, WorkerIndex p, uint64_t* granted) {
  driver->Credit(p, *granted += 10);
}

// CASES 2.45
TEST(OverloadTest, AFloodOfOneTenantDoesNotDelayAnother) {
  CoreDriver driver;
  uint64_t granted = 0;
  const WorkerIndex p = driver.AddPrefill("p", 0);
  driver.AddDecode("d");
  for (int i = 0; i < 100; ++i) driver.Ask(10, 1, 8, kMinute, 1, "flood");
  driver.Ask(10, 1, 8, kMinute, 1, "quiet");
  driver.Ask(10, 1, 8, kMinute, 1, "quiet");
  for (int i = 0; i < 4; ++i) Grant(&driver, p, &granted);
  // Flood, quiet, flood, quiet.
  driver.TakeLog();
  EXPECT_EQ(driver.core().counters().active_tenants, 2u);
  EXPECT_EQ(driver.core().counters().queued_work, 98u);
  driver.Cancel(RequestId(101));
  driver.Cancel(RequestId(102));
  EXPECT_THAT(
      driver.TakeLog(),
      ElementsAre("release 1 #2", "finish 101: CANCELLED", "reserve 1 #5",
                  "release 1 #4", "finish 102: CANCELLED", "reserve 1 #6"));
}

// CASES 2.15
TEST(OverloadTest, AFullQueueRefusesAtOnceAndIsShared) {
  CoreDriver driver({.admission = {.max_requests = 3}});
  driver.AddPrefill("p", 0);
  driver.AddDecode("d");
  for (int i = 0; i < 3; ++i) driver.Ask(10, 1, 8, kMinute, 1, "flood");
  const RequestId refused = driver.Ask(10, 1, 8, kMinute, 1, "flood");
  EXPECT_EQ(driver.answer(refused).status->code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryDelay(*driver.answer(refused).status).has_value());
  driver.TakeLog();
  const RequestId quiet = driver.Ask(10, 1, 8, kMinute, 1, "quiet");
  EXPECT_FALSE(driver.answer(quiet).status.has_value());
  EXPECT_THAT(driver.TakeLog(), ElementsAre("finish 3: RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(RetryDelay(*driver.answer(RequestId(3)).status).has_value());
  EXPECT_EQ(Rejected(driver, Rejection::kQueueFull), 1u);
  EXPECT_EQ(Rejected(driver, Rejection::kDisplaced), 1u);
  EXPECT_EQ(driver.core().counters().active_requests, 3u);
}

TEST(OverloadTest, WhatNeverFitsIsRefusedWithTheNumbers) {
  CoreDriver driver;
  driver.AddDecode("d");
  const RequestId blocks = driver.Ask(1600, 64, 400);
  EXPECT_EQ(driver.answer(blocks).status->message(),
            "max_tokens: prompt and answers need more KV blocks of 16 tokens "
            "than a decode worker has (got 1700, allowed 1000)");
  const RequestId choices = driver.Ask(10, 65);
  EXPECT_EQ(driver.answer(choices).status->message(),
            "n: more choices than a decode worker runs at once (got 65, "
            "allowed 64)");
  EXPECT_EQ(Rejected(driver, Rejection::kTooLarge), 2u);
}

// CASES 1.1
TEST(OverloadTest, CancelledInTheQueueCostsNothing) {
  CoreDriver driver;
  uint64_t granted = 0;
  const WorkerIndex p = driver.AddPrefill("p", 0);
  driver.AddDecode("d");
  const RequestId gone = driver.Ask(1000, 1, 8, kMinute, 1, "a");
  driver.Cancel(gone);
  driver.Ask(10, 1, 8, kMinute, 1, "a");
  driver.Ask(10, 1, 8, kMinute, 1, "b");
  driver.TakeLog();
  Grant(&driver, p, &granted);
  driver.Cancel(RequestId(2));
  EXPECT_THAT(driver.TakeLog(),
              ElementsAre("reserve 1 #1", "release 1 #1", "finish 2: CANCELLED",
                          "reserve 1 #2"))
      << "`a` had its turn first";
}

// CASES 1.7
TEST(OverloadTest, ARefusalAtDecodeIsNotCharged) {
  CoreDriver driver;
  uint64_t granted = 10;
  const WorkerIndex p = driver.AddPrefill("p", granted);
  const WorkerIndex d = driver.AddDecode("d");
  driver.Ask(10, 1, 8, kMinute, 1, "a");
  driver.Refused(d, AttemptId(1), 20);
  driver.Ask(10, 1, 8, kMinute, 1, "b");
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #1", "reserve 1 #2"));
  driver.Ask(10, 1, 8, kMinute, 1, "b");
  driver.Advance(milliseconds(25));
  Grant(&driver, p, &granted);
  driver.TakeLog();
  driver.Cancel(RequestId(1));
  EXPECT_THAT(
      driver.TakeLog(),
      ElementsAre("release 1 #3", "finish 1: CANCELLED", "reserve 1 #4"))
      << "`a`, refused once, came before the second of `b`";
}

TEST(OverloadTest, NoTimeLeftIsNotStartedWhileOthersWait) {
  CoreDriver driver;
  uint64_t granted = 0;
  const WorkerIndex p = driver.AddPrefill("p", 0);
  const WorkerIndex d = driver.AddDecode("d");
  for (int i = 0; i < 20; ++i) {
    const RequestId id = driver.Ask();
    Grant(&driver, p, &granted);
    driver.Reserved(d, driver.last_attempt());
    driver.Advance(seconds(1));
    driver.FirstTokens(p, driver.last_attempt(), {{0, 0, 7, true}});
    ASSERT_TRUE(driver.answer(id).status->ok());
    driver.Load(d, {});
  }
  driver.Ask(10, 1, 8, milliseconds(900));
  driver.Ask(10, 1, 8, milliseconds(1100));
  driver.TakeLog();
  Grant(&driver, p, &granted);
  EXPECT_THAT(driver.TakeLog(),
              ElementsAre("finish 21: RESOURCE_EXHAUSTED", "reserve 1 #21"));
  EXPECT_EQ(driver.answer(RequestId(21)).status->message(),
            "queue: too late to start (such requests take 1 s, 0.9 s left)");
  EXPECT_EQ(Rejected(driver, Rejection::kDeadline), 1u);
  driver.Ask(10, 1, 8, milliseconds(900));
  Grant(&driver, p, &granted);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #22"))
      << "alone there is nothing to lose";
}

// CASES 1.38
TEST(OverloadTest, BeyondTheReplayBudgetRequestsEndWithWhatTheyHad) {
  CoreDriver driver({.retry = {.share = 0, .per_second = 1, .burst = 1}});
  const WorkerIndex p = driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  const RequestId first = driver.Ask();
  driver.RunToDecode(first, p, d);
  driver.Failed(d, driver.last_attempt(), true);
  EXPECT_FALSE(driver.answer(first).status.has_value());
  driver.RunToDecode(first, p, d);
  driver.Failed(d, driver.last_attempt(), true);
  ASSERT_TRUE(driver.answer(first).status.has_value());
  EXPECT_EQ(driver.answer(first).status->code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(driver.answer(first).status->message(),
            "attempt: failed, and the cluster's budget of replays is spent (0 "
            "% of requests and 1 per second) (after 2 tokens)");
  EXPECT_TRUE(RetryDelay(*driver.answer(first).status).has_value());
  EXPECT_EQ(Rejected(driver, Rejection::kReplayBudget), 1u);
  driver.Advance(seconds(1));
  const RequestId second = driver.Ask();
  driver.Failed(d, driver.last_attempt(), true);
  EXPECT_FALSE(driver.answer(second).status.has_value());
}

class BreakerTest : public ::testing::Test {
 protected:
  // One request fails at `worker`, is replayed elsewhere and cancelled.
  void FailOnce(WorkerIndex worker,
                v1::FailureCause cause = v1::FAILURE_CAUSE_WORKER) {
    const RequestId id = driver_.Ask();
    driver_.Reserved(d_, driver_.last_attempt());
    driver_.Failed(worker, driver_.last_attempt(), true,
                   absl::StatusCode::kUnavailable, cause);
    driver_.Cancel(id);
  }
  void LoadAll(std::vector<WorkerIndex> workers) {
    for (WorkerIndex worker : workers) driver_.Credit(worker, 1 << 20);
  }

  CoreDriver driver_;
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
};

// CASES 1.13
TEST_F(BreakerTest, OpensOnFailuresAndClosesAfterATrial) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(driver_.StateOf(p_), "ready");
    FailOnce(p_);
  }
  EXPECT_EQ(driver_.StateOf(p_), "circuit_open");
  EXPECT_THAT(driver_.core().Workers()[0].detail(),
              HasSubstr("5 failures in a row, the last: broken; tried again"));
  driver_.TakeLog();
  driver_.Ask();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("serve 1 #11"))
      << "decode does without it";
  driver_.Advance(milliseconds(1250));
  EXPECT_EQ(driver_.StateOf(p_), "half_open");
  LoadAll({p_, d_});
  driver_.Ask();
  driver_.Ask();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #12"));
  driver_.Reserved(d_, AttemptId(12));
  driver_.FirstTokens(p_, AttemptId(12), {{0, 0, 5}});
  EXPECT_EQ(driver_.StateOf(p_), "ready");
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("start 0 #12", "emit 7: c0 5", "reserve 1 #13"));
}

TEST_F(BreakerTest, WithoutTrafficTheRouterTriesItItself) {
  for (int i = 0; i < 5; ++i) FailOnce(p_);
  driver_.TakeLog();
  driver_.Advance(milliseconds(1250));
  LoadAll({p_, d_});
  EXPECT_EQ(driver_.StateOf(p_), "half_open");
  driver_.Advance(milliseconds(2500));
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #11"));
  EXPECT_EQ(driver_.core().counters().active_requests, 0u);
  const auto parsed = ParseSequenceSpec(driver_.last_spec(), toy::Limits(1000),
                                        toy::MakeVocabulary());
  EXPECT_TRUE(parsed.ok()) << "workers take it: " << parsed.status();
  driver_.Reserved(d_, AttemptId(11));
  driver_.FirstTokens(p_, AttemptId(11), {{0, 0, 5}});
  EXPECT_EQ(driver_.StateOf(p_), "ready");
  driver_.Landed(d_, AttemptId(11));
  driver_.Tokens(d_, AttemptId(11), {{0, 1, 6, true}});
  driver_.Done(d_, AttemptId(11));
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #11"))
      << "no client hears of it";
  LoadAll({p_, d_});
  driver_.Advance(seconds(3));
  EXPECT_THAT(driver_.TakeLog(), IsEmpty()) << "once is enough";
}

TEST_F(BreakerTest, AProbeThatFailsOrIsRefusedIsNotRepeatedElsewhere) {
  for (int i = 0; i < 5; ++i) FailOnce(d_);
  driver_.TakeLog();
  driver_.Advance(milliseconds(1250));
  LoadAll({p_, d_});
  driver_.Advance(milliseconds(2500));
  EXPECT_THAT(driver_.TakeLog(), ElementsAre(StartsWith("reserve 1 #")));
  driver_.Refused(d_, driver_.last_attempt(), 20);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.StateOf(d_), "half_open");
  LoadAll({p_, d_});
  driver_.Advance(milliseconds(2500));
  EXPECT_THAT(driver_.TakeLog(), ElementsAre(StartsWith("reserve 1 #")));
  driver_.Failed(d_, driver_.last_attempt(), true);
  EXPECT_EQ(driver_.StateOf(d_), "circuit_open");
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.core().counters().queued_work, 0u);
}

TEST_F(BreakerTest, NobodyHealthyIsUnavailableUntilATrial) {
  for (int i = 0; i < 5; ++i) FailOnce(d_);
  EXPECT_EQ(driver_.StateOf(d_), "circuit_open");
  EXPECT_FALSE(driver_.core().Ready(driver_.now()).ok());
  const RequestId refused = driver_.Ask();
  EXPECT_EQ(driver_.answer(refused).status->code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RetryDelay(*driver_.answer(refused).status).has_value());
  EXPECT_EQ(Rejected(driver_, Rejection::kNoWorker), 2u)
      << "and the one that was to be replayed";
  driver_.Advance(milliseconds(1250));
  LoadAll({p_, d_});
  EXPECT_TRUE(driver_.core().Ready(driver_.now()).ok());
  const RequestId trial = driver_.Ask();
  EXPECT_FALSE(driver_.answer(trial).status.has_value());
}

TEST_F(BreakerTest, RequestsAndLoadAreNobodysFault) {
  for (int i = 0; i < 20; ++i) {
    FailOnce(p_, v1::FAILURE_CAUSE_LOAD);
    FailOnce(p_, v1::FAILURE_CAUSE_REQUEST);
    FailOnce(d_, v1::FAILURE_CAUSE_LOAD);
  }
  EXPECT_EQ(driver_.StateOf(p_), "ready");
  EXPECT_EQ(driver_.StateOf(d_), "ready");
}

TEST_F(BreakerTest, OneBadRequestCountsOnce) {
  for (int i = 0; i < 4; ++i) {
    driver_.Ask();
    for (int replay = 0; replay < 4; ++replay) {
      driver_.Reserved(d_, driver_.last_attempt());
      driver_.Failed(p_, driver_.last_attempt(), true);
    }
  }
  EXPECT_EQ(driver_.StateOf(p_), "ready");
}

TEST_F(BreakerTest, FailedTransfersDoNotOpenTheWrongOne) {
  const WorkerIndex d2 = driver_.AddDecode("d2");
  int failed = 0;
  for (int i = 0; i < 40 && driver_.StateOf(d_) == "ready"; ++i) {
    driver_.TakeLog();
    const RequestId id = driver_.Ask();
    const AttemptId attempt = driver_.last_attempt();
    const bool at_first = driver_.TakeLog().front().starts_with("reserve 1 ");
    const WorkerIndex d = at_first ? d_ : d2;
    driver_.Reserved(d, attempt);
    driver_.FirstTokens(p_, attempt, {{0, 0, 5}});
    if (at_first) {
      ++failed;
      // Both may be the first to tell.
      driver_.Failed(i % 4 == 0 ? p_ : d, attempt, true,
                     absl::StatusCode::kUnavailable,
                     v1::FAILURE_CAUSE_TRANSFER);
      const AttemptId replay = driver_.last_attempt();
      driver_.Reserved(d2, replay);
      driver_.FirstTokens(p_, replay, {{0, 1, 5}});
      driver_.Landed(d2, replay);
    } else {
      driver_.Landed(d, attempt);
    }
    driver_.Cancel(id);
  }
  EXPECT_EQ(driver_.StateOf(d_), "circuit_open");
  EXPECT_EQ(driver_.StateOf(p_), "ready");
  EXPECT_EQ(driver_.StateOf(d2), "ready");
  EXPECT_LE(failed, 6);
}

TEST_F(BreakerTest, NonsenseIsAFailureOfWhoSaidIt) {
  for (int i = 0; i < 5; ++i) {
    const RequestId id = driver_.Ask();
    driver_.RunToDecode(id, p_, d_);
    driver_.Tokens(d_, driver_.last_attempt(), {{0, 9, 5}});
    driver_.Cancel(id);
  }
  EXPECT_EQ(driver_.StateOf(d_), "circuit_open");
  EXPECT_EQ(driver_.StateOf(p_), "ready");
}

// CASES 1.10, 1.37: stopped while everybody waits for it.
TEST_F(BreakerTest, StallsAreFailuresOfWhoStalled) {
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  for (int i = 0; i < 10; ++i) {
    const RequestId id = driver_.Ask();
    driver_.Reserved(d_, driver_.last_attempt());
    if (driver_.TakeLog().back().starts_with("start 2 ")) {
      driver_.FirstTokens(p2, driver_.last_attempt(), {{0, 0, 1, true}});
    }
    for (int s = 0; s < 11; ++s) {
      driver_.Advance(seconds(1));
      LoadAll({p_, d_, p2});
    }
    if (!driver_.answer(id).status.has_value()) driver_.Cancel(id);
    if (driver_.StateOf(p_) != "ready") break;
  }
  EXPECT_NE(driver_.StateOf(p_), "ready");
  EXPECT_EQ(driver_.StateOf(p2), "ready");
  EXPECT_EQ(driver_.StateOf(d_), "ready");
}

TEST_F(BreakerTest, WorkersThatSayTheyAreUnhealthyGetNothing) {
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  load.set_unhealthy("3 steps gave no numbers");
  driver_.Load(p_, load);
  EXPECT_EQ(driver_.StateOf(p_), "unhealthy");
  EXPECT_EQ(driver_.core().Workers()[0].detail(), "3 steps gave no numbers");
  driver_.TakeLog();
  driver_.Ask();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("serve 1 #1"));
  load.clear_unhealthy();
  driver_.Load(p_, load);
  EXPECT_EQ(driver_.StateOf(p_), "ready");
  EXPECT_EQ(driver_.core().Workers()[0].detail(), "");
}

TEST(OverloadTest, EveryChoiceTakesAPlaceInTheBatchUntilItEnds) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p");
  v1::WorkerHello hello = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  hello.set_max_sequences(5);
  const WorkerIndex d = driver.AddDecode("d");
  driver.Up(d, hello);
  const RequestId four = driver.Ask(10, 4);
  EXPECT_THAT(driver.TakeLog(), Contains("reserve 1 #1"));
  driver.Ask(10, 1);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #2"));
  driver.Ask(10, 2);
  EXPECT_THAT(driver.TakeLog(), IsEmpty()) << "five of five are taken";
  const AttemptId attempt = AttemptId(1);
  driver.Reserved(d, attempt);
  driver.FirstTokens(p, attempt,
                     {{0, 0, 1, true}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}});
  driver.TakeLog();
  EXPECT_FALSE(driver.answer(four).status.has_value());
  driver.Tokens(d, attempt, {{1, 1, 2, true}});
  EXPECT_THAT(driver.TakeLog(), Not(Contains("reserve 1 #3")))
      << "d learns with the KV what p has ended";
  driver.Landed(d, attempt);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #3"));
}

TEST(SlowStartTest, WhoJoinsLaterGetsOneAndThenMore) {
  CoreDriver driver({.slow_start = seconds(10)});
  const WorkerIndex p = driver.AddPrefill("p");
  driver.AddDecode("d1");
  driver.Advance(seconds(5));
  driver.Credit(p, 1 << 20);
  driver.Credit(WorkerIndex(1), 1 << 20);
  driver.Advance(milliseconds(5001));
  driver.Credit(p, 1 << 20);
  driver.Credit(WorkerIndex(1), 1 << 20);
  const WorkerIndex d2 = driver.AddDecode("d2");
  for (int i = 0; i < 4; ++i) driver.Ask();
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #1", "reserve 2 #2",
                                            "reserve 1 #3", "reserve 1 #4"));
  driver.Reserved(d2, AttemptId(2));
  driver.Landed(d2, AttemptId(2));
  driver.TakeLog();
  driver.Ask();
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 2 #5"));
}

// CASES 1.59: one of two prefill workers dies every 5 s.
TEST(FlappingTest, TheBreakerOpensAndTheOthersGoOn) {
  CoreDriver driver;
  const WorkerIndex flapping = driver.AddPrefill("flapping");
  const WorkerIndex steady = driver.AddPrefill("steady");
  const WorkerIndex d = driver.AddDecode("d");
  int ok = 0, asked = 0;
  bool opened = false;
  bool up = true;
  for (int i = 0; i < 1200; ++i) {  // a minute
    const bool dies = i % 100 == 50;
    const RequestId id = driver.Ask();
    ++asked;
    driver.TakeLog();
    driver.Reserved(d, driver.last_attempt());
    if (dies && up) driver.Down(flapping);
    driver.Advance(milliseconds(50));
    up = up && !dies;
    if (i % 100 == 70) {
      driver.Up(flapping,
                CoreDriver::Hello("flapping", v1::WORKER_ROLE_PREFILL));
      up = true;
    }
    if (up) driver.Credit(flapping, 1 << 20);
    driver.Credit(steady, 1 << 20);
    driver.Credit(d, 1 << 20);
    // Whoever has it answers.
    driver.Reserved(d, driver.last_attempt());
    driver.FirstTokens(steady, driver.last_attempt(), {{0, 0, 3, true}});
    if (up) {
      driver.FirstTokens(flapping, driver.last_attempt(), {{0, 0, 3, true}});
    }
    driver.Tokens(d, driver.last_attempt(), {{0, 0, 3, true}});
    driver.Done(d, driver.last_attempt());
    ok +=
        driver.answer(id).status.has_value() && driver.answer(id).status->ok();
    opened = opened || driver.StateOf(flapping) == "circuit_open";
  }
  EXPECT_TRUE(opened);
  EXPECT_GE(ok, asked * 9 / 10);
  EXPECT_LE(driver.core().counters().replays, 12u) << "one per death at most";
}

}  // namespace
}  // namespace baton::router
