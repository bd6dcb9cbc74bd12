// Every process is drained and started again, one after the other, under load:
// no request fails.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>

#include "tests/fault/fault_run.h"
#include "tests/fault/load_clients.h"

namespace baton::testing {
namespace {

constexpr auto kReady = std::chrono::seconds(60);
constexpr auto kDrain = std::chrono::seconds(45);

class RollingRestartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = TwoOfEach({"--startup-grace=10s"});
    ASSERT_TRUE(options.ok()) << options.status();
    auto cluster = FaultedCluster::Start(*options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  // SIGTERM, the end with status 0, and a new process that all routers use.
  absl::Status Restart(Process& process,
                       const std::function<absl::Status()>& start) {
    const std::string name = process.name();
    process.Signal(SIGTERM);
    const auto status = process.WaitExit(kDrain);
    if (!status.ok()) return status.status();
    if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
      return absl::InternalError(name + " ended with wait status " +
                                 std::to_string(*status) + ":\n" +
                                 process.LogTail());
    }
    if (absl::Status s = start(); !s.ok()) return s;
    ++restarts_;
    return cluster_->processes().WaitWorkersReady(kReady);
  }

  std::unique_ptr<FaultedCluster> cluster_;
  int restarts_ = 0;
};

TEST_F(RollingRestartTest, NoRequestFails) {
  ProcessCluster& processes = cluster_->processes();
  LoadClients::Options load;
  load.clients = 4;
  auto clients = LoadClients::Start(&processes, load);
  ASSERT_TRUE(clients.ok()) << clients.status();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Restart(processes.prefill(i),
                      [&] { return processes.RestartPrefill(i); }),
              absl::OkStatus());
    EXPECT_EQ(Restart(processes.decode(i),
                      [&] { return processes.RestartDecode(i); }),
              absl::OkStatus());
    (*clients)->RouterChanges(i);
    EXPECT_EQ(Restart(processes.router(i),
                      [&] { return processes.RestartRouter(i); }),
              absl::OkStatus());
    (*clients)->RouterChanges(i);
  }
  (*clients)->Stop();
  const LoadClients::Counts counts = (*clients)->counts();
  std::printf(
      "rolling restart: %d restarts, %lu completed as when quiet (%lu after a "
      "replay), %lu sent on by a draining router\n",
      restarts_, counts.completed, counts.replayed, counts.redirected);
  EXPECT_EQ((*clients)->failures(), std::vector<std::string>());
  EXPECT_EQ(counts.lost_with_router, 0u);
  EXPECT_GT(counts.completed, 10u);
  EXPECT_EQ(restarts_, 6);
  EXPECT_EQ(cluster_->Recovered(), absl::OkStatus());
  EXPECT_EQ(processes.Drain(), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing
