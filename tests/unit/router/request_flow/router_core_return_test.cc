// Attempts that workers give up for their load go back to the queue: nobody
// failed, nothing is a replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

RouterOptions WithoutReplays() {
  RouterOptions options;
  options.max_replays = 0;
  options.retry = {.share = 0, .per_second = 0, .burst = 0};
  options.admission.max_age = seconds(2);
  return options;
}

class ReturnTest : public ::testing::Test {
 protected:
  void GiveUp(WorkerIndex worker, AttemptId attempt) {
    driver_.Failed(worker, attempt, true, absl::StatusCode::kResourceExhausted,
                   v1::FAILURE_CAUSE_LOAD);
  }
  // Time until the next attempt begins.
  Duration Wait(Duration most = seconds(60)) {
    const AttemptId last = driver_.last_attempt();
    const MonotonicTime begin = driver_.now();
    while (driver_.last_attempt() == last && driver_.now() - begin < most) {
      driver_.Advance(milliseconds(1));
      if (Milliseconds(driver_.now() - begin) >= next_load_) LoadAll();
    }
    next_load_ = 1000;
    return driver_.now() - begin;
  }
  void LoadAll() {
    next_load_ += 1000;
    driver_.Credit(p_, 1 << 20);
    driver_.Credit(d_, 1 << 20);
  }
  RouterCounters counters() { return driver_.core().counters(); }

  CoreDriver driver_{WithoutReplays()};
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
  double next_load_ = 1000;
};

TEST_F(ReturnTest, TokensStayAndNothingIsAReplay) {
  const RequestId id = driver_.Ask();
  const AttemptId first = driver_.RunToDecode(id, p_, d_);
  driver_.Tokens(d_, first, {{0, 1, 7}});
  driver_.Advance(seconds(3));  // longer than work may wait that never started
  LoadAll();
  driver_.TakeLog();
  GiveUp(d_, first);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre()) << "not at once";
  Wait();
  EXPECT_THAT(driver_.last_spec().choices(0).generated_token_ids(),
              ElementsAre(100, 7));
  const AttemptId second = driver_.last_attempt();
  driver_.Reserved(d_, second);
  driver_.FirstTokens(p_, second, {{0, 2, 8, true}});
  ASSERT_EQ(driver_.answer(id).status, absl::OkStatus());
  EXPECT_EQ(driver_.answer(id).tokens.at(0),
            (std::vector<uint32_t>{100, 7, 8}));
  EXPECT_EQ(driver_.answer(id).served.replays(), 0u);
  EXPECT_EQ(counters().replays, 0u);
  EXPECT_EQ(counters().returned, 1u);
}

TEST_F(ReturnTest, LandingsAndPrefillWorkersGiveUpToo) {
  driver_.Ask();
  AttemptId id = driver_.last_attempt();
  driver_.Reserved(d_, id);
  driver_.TakeLog();
  GiveUp(d_, id);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("cancel 0 #1"));
  Wait();
  id = driver_.last_attempt();
  driver_.Reserved(d_, id);
  driver_.TakeLog();
  GiveUp(p_, id);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("release 1 #2"));
  Wait();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #3"));
  EXPECT_EQ(counters().returned, 2u);
  EXPECT_EQ(counters().replays, 0u);
}

// What a prefill worker says of an attempt that it has handed over changes
// nothing.
TEST_F(ReturnTest, NotAfterTheHandOver) {
  const RequestId id = driver_.Ask();
  const AttemptId attempt = driver_.RunToDecode(id, p_, d_);
  GiveUp(p_, attempt);
  EXPECT_EQ(counters().returned, 0u);
  driver_.Tokens(d_, attempt, {{0, 1, 7, true}});
  driver_.Done(d_, attempt);
  EXPECT_EQ(driver_.answer(id).status, absl::OkStatus());
}

TEST_F(ReturnTest, NoWorkerIsAvoided) {
  driver_.Ask();
  driver_.Reserved(d_, driver_.last_attempt());
  driver_.AddDecode("d2", v1::DISAGGREGATION_NEVER, /*credit=*/0);
  GiveUp(d_, driver_.last_attempt());
  driver_.TakeLog();
  Wait();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #2"))
      << "rather than wait for the other";
}

// It costs less and less, and ends with the request.
TEST_F(ReturnTest, EveryTimeItWaitsLonger) {
  const RequestId id = driver_.Ask(10, 1, 8, seconds(60));
  Duration least = milliseconds(50);
  int attempts = 0;
  while (!driver_.answer(id).status.has_value()) {
    ++attempts;
    driver_.Reserved(d_, driver_.last_attempt());
    GiveUp(d_, driver_.last_attempt());
    const Duration waited = Wait();
    if (!driver_.answer(id).status.has_value()) {
      EXPECT_GE(waited, least);
      EXPECT_LE(waited, least * 5 / 4 + milliseconds(1));
    }
    least = std::min<Duration>(2 * least, milliseconds(6400));
  }
  EXPECT_EQ(driver_.answer(id).status->code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(attempts, 17);
  EXPECT_GE(attempts, 13);
}

TEST_F(ReturnTest, ChoicesGoOnAlone) {
  const RequestId id = driver_.Ask(10, 3);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 1}, {1, 0, 2, true}, {2, 0, 3}});
  driver_.Landed(d_, a);
  GiveUp(d_, a);
  driver_.TakeLog();
  Wait();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #2", "reserve 1 #3"));
  EXPECT_EQ(counters().returned, 1u);
  for (const AttemptId next : {AttemptId(2), AttemptId(3)}) {
    driver_.Reserved(d_, next);
    const uint32_t choice = driver_.SpecOf(next).choices(0).index();
    driver_.FirstTokens(p_, next, {{choice, 1, 9, true}});
  }
  EXPECT_EQ(driver_.answer(id).status, absl::OkStatus());
}

// A worker keeps room for who has waited for long; it is told when that one has
// found a place elsewhere.
TEST_F(ReturnTest, WhoRefusedHearsWhenThereIsAPlaceElsewhere) {
  driver_.Ask();
  const AttemptId first = driver_.last_attempt();
  const WorkerIndex d2 = driver_.AddDecode("d2");
  driver_.Refused(d_, first, 500);
  const AttemptId second = driver_.last_attempt();
  ASSERT_NE(second, first);
  driver_.TakeLog();
  driver_.Reserved(d2, second);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #2", "release 1 #1"));
}

TEST_F(ReturnTest, WhoRefusedLongAgoNeedsNoWord) {
  driver_.Ask();
  driver_.AddDecode("d2");
  driver_.Refused(d_, driver_.last_attempt(), 20);
  driver_.Advance(milliseconds(1100));
  driver_.TakeLog();
  driver_.Reserved(WorkerIndex(2), driver_.last_attempt());
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #2"));
}

TEST_F(ReturnTest, NorDoesWhoTakesItInTheEnd) {
  driver_.Ask();
  driver_.Refused(d_, driver_.last_attempt(), 500);
  Wait();
  driver_.TakeLog();
  driver_.Reserved(d_, driver_.last_attempt());
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #2"));
}

// As many as a pass of the queue looks at, all waiting for their time, stand
// before the newcomer.
TEST_F(ReturnTest, WhoWaitsForItsTimeHoldsUpNobody) {
  constexpr int kMany = 64;
  for (int i = 0; i < kMany; ++i) driver_.Ask(10, 1, 8, seconds(600), 1);
  for (int round = 0; round < 8; ++round) {
    std::vector<AttemptId> open;
    while (open.size() < kMany) {
      for (const std::string& line : driver_.TakeLog()) {
        if (line.rfind("reserve", 0) == 0) {
          open.emplace_back(std::stoull(line.substr(line.find('#') + 1)));
        }
      }
      driver_.Advance(milliseconds(10));
      LoadAll();
    }
    for (AttemptId attempt : open) GiveUp(d_, attempt);
  }
  LoadAll();
  driver_.TakeLog();
  driver_.Ask(10, 1, 8, seconds(900), 1);
  EXPECT_EQ(driver_.TakeLog().size(), 1u) << "of an idle cluster";
}

TEST_F(ReturnTest, NoPlacesAreKeptForWhoWaitsForItsTime) {
  v1::WorkerHello hello = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  hello.set_max_sequences(4);
  driver_.Down(d_);
  driver_.Up(d_, hello);
  LoadAll();
  driver_.Ask(10, 2, 8, seconds(600));
  for (int round = 0; round < 8; ++round) {
    GiveUp(d_, driver_.last_attempt());
    if (round < 7) Wait();
  }
  LoadAll();
  for (int i = 0; i < 4; ++i) {
    driver_.TakeLog();
    driver_.Ask(10, 1, 8, seconds(900));
    EXPECT_EQ(driver_.TakeLog().size(), 1u) << i << " of 4 places";
  }
}

// A worker at fault is another matter.
TEST_F(ReturnTest, FaultsAreReplays) {
  const RequestId id = driver_.Ask();
  const AttemptId attempt = driver_.RunToDecode(id, p_, d_);
  driver_.Failed(d_, attempt, true, absl::StatusCode::kResourceExhausted,
                 v1::FAILURE_CAUSE_WORKER);
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_EQ(driver_.answer(id).status->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(counters().returned, 0u);
}

TEST_F(ReturnTest, WhatWasAnsweredMeanwhileEnds) {
  const RequestId id = driver_.Ask();
  const AttemptId attempt = driver_.RunToDecode(id, p_, d_);
  driver_.Tokens(d_, attempt, {{0, 1, 7, true}});
  GiveUp(d_, attempt);
  EXPECT_EQ(driver_.answer(id).status, absl::OkStatus());
  EXPECT_EQ(counters().returned, 0u);
}

}  // namespace
}  // namespace baton::router
