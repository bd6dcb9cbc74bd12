#include "common/worker/worker_drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "proto/prefill.grpc.pb.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

// Idle after `polls` questions, or once it was shut down.
class ToyWorker final : public Worker {
 public:
  grpc::Service* service() override { return nullptr; }
  std::string service_name() const override { return "toy"; }
  size_t sessions() const override { return 0; }
  WorkerState state() override {
    WorkerState state;
    state.idle = polls-- <= 0;
    state.ledger = ledger;
    state.liveness = liveness;
    return state;
  }
  void Drain() override { calls.push_back("drain"); }
  void ShutDown() override {
    calls.push_back("shut down");
    if (ends) polls = 0;
  }
  void CloseSessions(const absl::Status&) override {
    calls.push_back("close sessions");
  }

  int polls = 0;
  bool ends = true;
  absl::Status liveness;
  Ledger ledger;
  std::vector<std::string> calls;
};

class WorkerDrainTest : public testing::Test {
 protected:
  WorkerDrainTest() {
    auto server = RpcServer::Start({.address = "127.0.0.1:0"}, {&service_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    requests_.StartServing();
    requests_.Add(SIGTERM);
    worker_.ledger.free = 8;
  }
  int Drain(Duration timeout) {
    return DrainWorker(worker_, *server_, requests_, timeout);
  }

  v1::PrefillWorker::CallbackService service_;
  std::unique_ptr<RpcServer> server_;
  ShutdownRequests requests_;
  ToyWorker worker_;
};

TEST_F(WorkerDrainTest, WaitsForWhatWasAccepted) {
  worker_.polls = 5;
  worker_.ledger.used[static_cast<size_t>(BlockUse::kPrefix)] = 3;
  EXPECT_EQ(Drain(std::chrono::hours(1)), 0);
  EXPECT_THAT(worker_.calls, ElementsAre("drain", "close sessions"));
}

TEST_F(WorkerDrainTest, AWorkerThatOnlyARestartHelpsIsNotWaitedFor) {
  worker_.polls = 1 << 30;
  worker_.liveness = absl::InternalError("the event loop stands still");
  EXPECT_EQ(Drain(std::chrono::hours(1)), kExitNotClean);
  EXPECT_THAT(worker_.calls, ElementsAre("drain", "close sessions"));
}

TEST_F(WorkerDrainTest, EndsTheRestAtTheTimeout) {
  worker_.polls = 1 << 30;
  EXPECT_EQ(Drain(milliseconds(30)), 0);
  EXPECT_THAT(worker_.calls,
              ElementsAre("drain", "shut down", "close sessions"));
}

TEST_F(WorkerDrainTest, EndsTheRestAtTheSecondRequest) {
  worker_.polls = 1 << 30;
  requests_.Add(SIGTERM);
  EXPECT_EQ(Drain(std::chrono::hours(1)), 0);
  EXPECT_THAT(worker_.calls,
              ElementsAre("drain", "shut down", "close sessions"));
}

TEST_F(WorkerDrainTest, IsBoundedWhenTheWorkerNeverIsIdle) {
  worker_.polls = 1 << 30;
  worker_.ends = false;
  requests_.Add(SIGTERM);
  requests_.Add(SIGTERM);
  EXPECT_EQ(Drain(std::chrono::hours(1)), 0) << "the ledger is what counts";
}

TEST_F(WorkerDrainTest, BlocksThatAreLeftHaveAnExitStatusOfTheirOwn) {
  worker_.ledger.used[static_cast<size_t>(BlockUse::kQuarantine)] = 1;
  EXPECT_EQ(Drain(seconds(1)), kExitNotClean);
}

}  // namespace
}  // namespace baton
