#include "router/client/cli/local_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/strings.h"
#include "common/rpc/rpc_server.h"
#include "proto/generation.grpc.pb.h"

namespace baton::cli {
namespace {

using testing::HasSubstr;

// Stands in for the router's RPC side; the processes are shell scripts.
class FakeRouter final : public v1::Generation::Service {
 public:
  grpc::Status GetClusterInfo(grpc::ServerContext*,
                              const v1::GetClusterInfoRequest*,
                              v1::GetClusterInfoResponse* response) override {
    v1::WorkerInfo* worker = response->add_workers();
    worker->set_address("w:1");
    worker->set_state(++calls_ > 2 ? "ready" : "connecting");
    return grpc::Status::OK;
  }

 private:
  std::atomic<int> calls_ = 0;
};

class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest()
      : folder_(testing::TempDir() + "/local_cluster_test"),
        server_(*RpcServer::Start({.address = "127.0.0.1:0"}, {&router_})) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/tmp");
    setenv("TMPDIR", (folder_ + "/tmp").c_str(), 1);
    options_.binary_folder = folder_;
    options_.log_folder = folder_ + "/logs";
    options_.drain_timeout = std::chrono::seconds(10);
    options_.stop_now = [] { return false; };
    options_.progress = [](const std::string&) {};
    WriteBinary("baton-prefill-worker", "127.0.0.1:1001", "");
    WriteBinary("baton-decode-worker", "127.0.0.1:1002", "");
    WriteBinary("baton-router", server_->address(), "");
  }
  ~LocalClusterTest() override {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }

  // A process that says it is ready at `address`, notes its start and its end
  // in the file "events" and exits with 0 on SIGTERM.
  void WriteBinary(const std::string& name, const std::string& address,
                   const std::string& first) {
    const std::string path = StrCat(folder_, "/", name);
    std::ofstream(path) << "#!/bin/sh\n"
                        << first << "\necho $$\n"
                        << "trap 'echo stop " << name << " >> " << folder_
                        << "/events; exit 0' TERM\n"
                        << "echo start " << name << " \"$@\" >> " << folder_
                        << "/events\n"
                        << "for a in \"$@\"; do case $a in --ready-file=*) "
                           "f=${a#--ready-file=};; esac; done\n"
                        << "echo '{\"address\": \"" << address
                        << "\", \"admin\": \"a:1\"}' > $f.tmp && mv $f.tmp "
                           "$f\n"
                        << "while :; do sleep 0.01; done\n";
    chmod(path.c_str(), 0700);
  }

  std::vector<std::string> Events() {
    std::ifstream file(folder_ + "/events");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  // Scripts write their process id into the log.
  pid_t ProcessOf(const std::string& name) {
    pid_t pid = 0;
    std::ifstream(StrCat(folder_, "/logs/", name, ".log")) >> pid;
    return pid;
  }

  bool TemporaryFolderIsEmpty() {
    return std::filesystem::is_empty(folder_ + "/tmp");
  }

  const std::string folder_;
  FakeRouter router_;
  std::unique_ptr<RpcServer> server_;
  LocalClusterOptions options_;
};

TEST_F(LocalClusterTest, StartsWorkersThenRouterAndDrainsTheOtherWayRound) {
  {
    LocalCluster cluster(options_);
    const absl::Status status = cluster.Start();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(cluster.router_address(), server_->address());
    EXPECT_EQ(cluster.info().workers(0).state(), "ready");
    EXPECT_TRUE(cluster.RouterRunning());
    EXPECT_TRUE(cluster.NewDeaths().empty());
    EXPECT_FALSE(TemporaryFolderIsEmpty());
    EXPECT_TRUE(cluster.Drain());
    EXPECT_FALSE(cluster.RouterRunning());
  }
  EXPECT_TRUE(TemporaryFolderIsEmpty());
  const auto events = Events();
  ASSERT_EQ(events.size(), 6u);
  EXPECT_THAT(events[2], HasSubstr("start baton-router"));
  EXPECT_THAT(events[2], HasSubstr("--prefill=127.0.0.1:1001"));
  EXPECT_THAT(events[2], HasSubstr("--decode=127.0.0.1:1002"));
  EXPECT_EQ(events[3], "stop baton-router");
  EXPECT_EQ(events[4], "stop baton-prefill-worker");
  EXPECT_EQ(events[5], "stop baton-decode-worker");
}

TEST_F(LocalClusterTest, AFailedWorkerEndsTheStartWithItsLog) {
  WriteBinary("baton-decode-worker", "x:1",
              "echo cannot map the model; exit 4");
  {
    LocalCluster cluster(options_);
    const absl::Status status = cluster.Start();
    EXPECT_EQ(status.message(),
              "decode-0 exited with status 4; the end of its log:\n"
              "cannot map the model\n");
  }
  EXPECT_TRUE(TemporaryFolderIsEmpty());
}

TEST_F(LocalClusterTest, AMissingBinaryIsNamed) {
  std::filesystem::remove(folder_ + "/baton-prefill-worker");
  LocalCluster cluster(options_);
  EXPECT_THAT(std::string(cluster.Start().message()),
              HasSubstr("/baton-prefill-worker: cannot start: No such file"));
}

TEST_F(LocalClusterTest, StopAbandonsTheStart) {
  WriteBinary("baton-decode-worker", "x:1", "sleep 1000");
  std::atomic<int> polls = 0;
  options_.stop_now = [&] { return ++polls > 3; };
  LocalCluster cluster(options_);
  EXPECT_TRUE(absl::IsCancelled(cluster.Start()));
}

TEST_F(LocalClusterTest, DeathsAreToldOnceAndSpoilTheDrainOfNobodyElse) {
  options_.decode_workers = 2;
  LocalCluster cluster(options_);
  ASSERT_TRUE(cluster.Start().ok());
  ASSERT_EQ(kill(ProcessOf("decode-1"), SIGKILL), 0);
  std::vector<std::string> deaths;
  while (deaths.empty()) deaths = cluster.NewDeaths();
  EXPECT_THAT(deaths, testing::ElementsAre(HasSubstr(
                          "decode-1 was killed by signal 9 (Killed)")));
  EXPECT_TRUE(cluster.NewDeaths().empty());
  EXPECT_TRUE(cluster.RouterRunning());
  EXPECT_TRUE(cluster.Drain());
}

TEST_F(LocalClusterTest, ADeafProcessIsKilledWhenTheUserInsists) {
  std::atomic<bool> insist = false;
  options_.stop_now = [&] { return insist.load(); };
  const std::string path = folder_ + "/baton-router";
  std::ifstream original(path);
  std::string script((std::istreambuf_iterator<char>(original)), {});
  const size_t trap = script.find("trap");
  script.replace(trap, script.find('\n', trap) - trap, "trap '' TERM");
  std::ofstream(path) << script;
  LocalCluster cluster(options_);
  ASSERT_TRUE(cluster.Start().ok());
  insist = true;
  EXPECT_FALSE(cluster.Drain());
  EXPECT_FALSE(cluster.RouterRunning());
}

}  // namespace
}  // namespace baton::cli
