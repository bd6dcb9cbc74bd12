// What counts as progress of an attempt, and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::seconds;
using ::testing::Contains;

class ProgressTest : public ::testing::Test {
 protected:
  // A second passes; every worker says that nothing has changed.
  void Pass(std::vector<WorkerIndex> others = {}) {
    driver_.Advance(seconds(1));
    others.insert(others.end(), {p_, d_});
    for (WorkerIndex worker : others) driver_.Load(worker, load_);
  }
  // A request whose blocks are on their way.
  AttemptId Transferring() {
    driver_.Ask();
    const AttemptId id = driver_.last_attempt();
    driver_.Reserved(d_, id);
    driver_.FirstTokens(p_, id, {{0, 0, 5}});
    return id;
  }
  uint64_t replays() { return driver_.core().counters().replays; }

  CoreDriver driver_;
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
  v1::WorkerLoad load_ = [] {
    v1::WorkerLoad load;
    load.set_granted_prefill_tokens(1 << 20);
    return load;
  }();
};

TEST_F(ProgressTest, StepsOfABusyWorker) {
  const RequestId id = driver_.Ask();
  driver_.Reserved(d_, driver_.last_attempt());
  for (int i = 0; i < 40; ++i) {
    load_.set_steps(i);
    Pass();
  }
  EXPECT_EQ(replays(), 0u);
  EXPECT_FALSE(driver_.answer(id).status.has_value());
}

TEST_F(ProgressTest, BlocksThatArriveKeepALongTransfer) {
  const AttemptId id = Transferring();
  for (uint32_t i = 1; i <= 5; ++i) {
    for (int s = 0; s < 9; ++s) Pass();
    driver_.LandingProgress(d_, id, i);
  }
  EXPECT_EQ(replays(), 0u);
  driver_.Landed(d_, id);
  driver_.Tokens(d_, id, {{0, 1, 6, true}});
  driver_.Done(d_, id);
  EXPECT_EQ(driver_.answer(RequestId(1)).status, absl::OkStatus());
}

TEST_F(ProgressTest, ATransferThatFallsSilentIsReplayedInTime) {
  const AttemptId id = Transferring();
  for (int s = 0; s < 9; ++s) Pass();
  driver_.LandingProgress(d_, id, 1);
  for (int s = 0; s < 9; ++s) Pass();
  EXPECT_EQ(replays(), 0u);
  Pass();
  EXPECT_EQ(replays(), 1u);
}

TEST_F(ProgressTest, BlocksOfOthersDoNotKeepASilentTransfer) {
  const AttemptId silent = Transferring();
  const AttemptId other = Transferring();
  driver_.TakeLog();
  for (uint32_t i = 1; i <= 10; ++i) {
    Pass();
    driver_.LandingProgress(d_, other, i);
  }
  EXPECT_EQ(replays(), 1u);
  EXPECT_THAT(driver_.TakeLog(),
              Contains(StrCat("release ", d_.value(), " #", silent.value())));
}

// A prefill worker that waits for its blocks to leave makes no step.
TEST_F(ProgressTest, BlocksThatLeaveAPrefillWorkerKeepWhatWaitsThere) {
  const AttemptId sending = Transferring();
  driver_.Ask();
  driver_.Reserved(d_, driver_.last_attempt());
  for (uint32_t i = 1; i <= 40; ++i) {
    Pass();
    driver_.LandingProgress(d_, sending, i);
  }
  EXPECT_EQ(replays(), 0u);
  for (int s = 0; s < 10; ++s) Pass();
  EXPECT_EQ(replays(), 2u);
}

TEST_F(ProgressTest, ProgressOfWhatIsOverIsStale) {
  const AttemptId id = Transferring();
  driver_.Landed(d_, id);
  driver_.Tokens(d_, id, {{0, 1, 6, true}});
  driver_.Done(d_, id);
  const uint64_t before = driver_.stale();
  driver_.LandingProgress(d_, id, 3);
  EXPECT_EQ(driver_.stale(), before + 1);
}

// Its prefill worker is gone, the decode worker goes on.
TEST_F(ProgressTest, ProgressAfterTheHolderWasRemoved) {
  const AttemptId id = Transferring();
  driver_.Landed(d_, id);
  driver_.Handle(WorkerRemoved{p_});
  driver_.LandingProgress(d_, id, 3);
  EXPECT_EQ(replays(), 0u);
}

}  // namespace
}  // namespace baton::router
