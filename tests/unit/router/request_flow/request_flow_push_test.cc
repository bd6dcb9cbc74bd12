// Attempts that lost their blocks at D and want them back from P.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PushTest : public ::testing::Test {
 protected:
  AttemptId Decoding() {
    request_ = driver_.Ask(40, 1, 100);
    const AttemptId attempt = driver_.RunToDecode(request_, p_, d_);
    driver_.TakeLog();
    return attempt;
  }
  CoreDriver driver_;
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
  RequestId request_;
};

TEST_F(PushTest, IsPassedOnAndItsRefusalBack) {
  const AttemptId a = Decoding();
  driver_.PushWanted(d_, a, 70);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("push 0 #1 L70"));
  EXPECT_EQ(driver_.last_push().ticket().token_count(), 32u);
  EXPECT_EQ(driver_.last_push().prefix_hash(), std::string(32, 'h'));
  EXPECT_EQ(driver_.last_push().deadline_ms(), 900u);
  driver_.PushRefused(p_, a, 70);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("refuse 1 #1 L70: not held, gone"));
  EXPECT_EQ(driver_.stale(), 0u);
  driver_.Tokens(d_, a, {{0, 1, 8, true}});
  driver_.Done(d_, a);
  EXPECT_TRUE(driver_.answer(request_).status->ok()) << "the attempt lives on";
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("emit 1: c0 8 end", "account 1", "finish 1: OK"))
      << "P holds nothing of it and is told nothing";
}

TEST_F(PushTest, EachLandingIsAskedForOnce) {
  const AttemptId a = Decoding();
  driver_.PushWanted(d_, a, 70);
  driver_.PushWanted(d_, a, 70);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("push 0 #1 L70"));
  EXPECT_EQ(driver_.stale(), 1u);
  driver_.PushWanted(d_, a, 71);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("push 0 #1 L71"));
  driver_.PushRefused(p_, a, 70);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty()) << "it is about the landing before";
  EXPECT_EQ(driver_.stale(), 2u);
  driver_.PushRefused(p_, a, 71);
  driver_.PushRefused(p_, a, 71);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("refuse 1 #1 L71: not held, gone"));
  EXPECT_EQ(driver_.stale(), 3u);
}

TEST_F(PushTest, WithoutASessionOfThatPrefillWorkerItIsRefusedAtOnce) {
  const WorkerIndex other = driver_.AddPrefill("other");
  const AttemptId a = Decoding();
  driver_.Down(p_);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  driver_.PushWanted(d_, a, 70);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("refuse 1 #1 L70: no prefill worker to ask"))
      << "the other one does not have the blocks";
  driver_.PushRefused(other, a, 70);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.stale(), 1u);
}

TEST_F(PushTest, AWorkerThatIsGoneForGoodIsNotAsked) {
  const AttemptId a = Decoding();
  driver_.Handle(WorkerRemoved{p_});
  driver_.TakeLog();
  driver_.PushWanted(d_, a, 70);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("refuse 1 #1 L70: no prefill worker to ask"));
}

TEST_F(PushTest, AnAttemptThatWasServedAloneHasNobodyToAsk) {
  CoreDriver driver;
  const WorkerIndex d = driver.AddDecode("d");
  driver.Ask(10, 1, 8);
  const AttemptId a = driver.last_attempt();
  driver.Tokens(d, a, {{0, 0, 7}});
  driver.TakeLog();
  driver.PushWanted(d, a, 70);
  EXPECT_THAT(driver.TakeLog(),
              ElementsAre("refuse 0 #1 L70: no prefill worker to ask"));
}

TEST_F(PushTest, ALostSessionOfThePrefillWorkerRefusesWhatWasAskedThere) {
  const AttemptId a = Decoding();
  driver_.PushWanted(d_, a, 70);
  driver_.TakeLog();
  driver_.Down(p_);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("refuse 1 #1 L70: p (p): session lost: gone"));
  driver_.Up(p_, CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL));
  driver_.Down(p_);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty()) << "once";
  EXPECT_FALSE(driver_.answer(request_).status.has_value());
}

TEST_F(PushTest, ALostSessionOfTheDecodeWorkerEndsIt) {
  const AttemptId a = Decoding();
  driver_.PushWanted(d_, a, 70);
  driver_.TakeLog();
  driver_.Down(d_);
  driver_.PushRefused(p_, a, 70);
  for (const std::string& line : driver_.TakeLog()) {
    EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("refuse")));
  }
  EXPECT_EQ(driver_.stale(), 1u);
}

TEST_F(PushTest, WhatCannotBeWantedChangesNothing) {
  driver_.Ask(40, 1, 100);
  const AttemptId a = driver_.last_attempt();
  driver_.TakeLog();
  driver_.PushWanted(d_, a, 70);  // nothing is reserved
  driver_.Reserved(d_, a);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #1"));
  driver_.PushWanted(d_, a, 70);  // nothing has landed
  driver_.PushRefused(p_, a, 70);
  driver_.PushWanted(d_, AttemptId(99), 70);
  driver_.PushRefused(p_, AttemptId(99), 70);
  const WorkerIndex other = driver_.AddDecode("other");
  driver_.TakeLog();
  driver_.PushWanted(other, a, 70);  // it is not there
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.stale(), 6u);
}

TEST_F(PushTest, AfterTheEndOfTheAttemptNothingIsPassedOn) {
  const AttemptId a = Decoding();
  driver_.PushWanted(d_, a, 70);
  driver_.Cancel(request_);
  driver_.TakeLog();
  driver_.PushRefused(p_, a, 70);
  driver_.PushWanted(d_, a, 71);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.stale(), 2u);
}

TEST_F(PushTest, ADecodeWorkerThatIsDoneIsNotTold) {
  request_ = driver_.Ask(40, 1, 100);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.Landed(d_, a);
  driver_.PushWanted(d_, a, 70);
  driver_.Tokens(d_, a, {{0, 1, 8, true}});
  driver_.Done(d_, a);
  driver_.TakeLog();
  driver_.PushRefused(p_, a, 70);
  driver_.PushWanted(d_, a, 71);
  EXPECT_THAT(driver_.TakeLog(), IsEmpty()) << "only token 0 is missing";
  EXPECT_EQ(driver_.stale(), 2u);
}

TEST_F(PushTest, MayOvertakeTheFirstTokens) {
  request_ = driver_.Ask(40, 1, 100);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.Landed(d_, a);
  driver_.TakeLog();
  driver_.PushWanted(d_, a, 70);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("push 0 #1 L70"));
}

TEST_F(PushTest, IsASignOfProgressOfItsAttempt) {
  const AttemptId a = Decoding();
  driver_.Advance(seconds(6));
  driver_.Load(p_, {});
  driver_.Load(d_, {});
  driver_.PushWanted(d_, a, 70);
  driver_.TakeLog();
  driver_.Advance(seconds(6));
  driver_.Load(p_, {});
  driver_.Load(d_, {});
  EXPECT_THAT(driver_.TakeLog(), IsEmpty()) << "it is given its time";
  driver_.Advance(seconds(5));
  EXPECT_THAT(driver_.TakeLog(),
              ::testing::Contains(::testing::HasSubstr("release 1 #1")));
}

}  // namespace
}  // namespace baton::router
