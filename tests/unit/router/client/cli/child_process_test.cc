#include "router/client/cli/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  ChildProcessTest() : log_(testing::TempDir() + "/child_process_test.log") {
    std::filesystem::remove(log_);
  }
  std::unique_ptr<ChildProcess> Shell(const std::string& script) {
    auto child = ChildProcess::Start({.name = "shell",
                                      .binary = "/bin/sh",
                                      .arguments = {"-c", script},
                                      .log_file = log_});
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }

  const std::string log_;
};

TEST_F(ChildProcessTest, ReportsHowItEnded) {
  auto clean = Shell("exit 0");
  EXPECT_TRUE(clean->WaitExit(seconds(10)));
  EXPECT_TRUE(clean->ExitedCleanly());
  EXPECT_EQ(clean->ExitText(), "exited with status 0");
  auto failed = Shell("exit 3");
  EXPECT_TRUE(failed->WaitExit(seconds(10)));
  EXPECT_FALSE(failed->ExitedCleanly());
  EXPECT_EQ(failed->ExitText(), "exited with status 3");
  auto killed = Shell("kill -9 $$");
  EXPECT_TRUE(killed->WaitExit(seconds(10)));
  EXPECT_EQ(killed->ExitText(), "was killed by signal 9 (Killed)");
}

TEST_F(ChildProcessTest, SignalsEndALongOne) {
  auto child = Shell("exec sleep 1000");
  EXPECT_TRUE(child->Running());
  EXPECT_FALSE(child->WaitExit(milliseconds(20)));
  EXPECT_EQ(child->ExitText(), "is running");
  child->Signal(SIGTERM);
  EXPECT_TRUE(child->WaitExit(seconds(10)));
  child->Signal(SIGTERM);
}

TEST_F(ChildProcessTest, DestructorLeavesNoProcess) {
  auto child = Shell("trap '' TERM; echo $$; while :; do sleep 1; done");
  pid_t pid = 0;
  while (pid == 0) std::ifstream(log_) >> pid;
  EXPECT_EQ(kill(pid, 0), 0);
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildProcessTest, LogTailHasTheLastWholeLines) {
  auto child = Shell(
      "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done; "
      "echo last >&2");
  ASSERT_TRUE(child->WaitExit(seconds(10)));
  const std::string tail = child->LogTail();
  EXPECT_LE(tail.size(), 2048u);
  EXPECT_THAT(tail, testing::StartsWith("line "));
  EXPECT_THAT(tail, testing::EndsWith("line 399\nlast\n"));
}

TEST_F(ChildProcessTest, MissingBinaryIsNotFound) {
  const auto child = ChildProcess::Start(
      {.name = "x", .binary = "/nowhere/x", .arguments = {}, .log_file = log_});
  EXPECT_TRUE(absl::IsNotFound(child.status()));
  EXPECT_THAT(std::string(child.status().message()),
              HasSubstr("/nowhere/x: cannot start: No such file"));
}

TEST_F(ChildProcessTest, DiesWithItsParent) {
  const pid_t parent = fork();
  if (parent == 0) {
    auto child = Shell("echo $$; exec sleep 1000");
    pause();
    _exit(0);
  }
  pid_t grandchild = 0;
  while (grandchild == 0) std::ifstream(log_) >> grandchild;
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  const auto deadline = MonotonicNow() + seconds(10);
  bool gone = false;
  while (!gone && MonotonicNow() < deadline) {
    // A zombie that nobody reaps counts as gone.
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string pid, name, state;
    gone = !(stat >> pid >> name >> state) || state == "Z";
  }
  EXPECT_TRUE(gone);
}

TEST_F(ChildProcessTest, WithoutLogFileLinesCarryTheName) {
  EXPECT_EXIT(
      {
        auto child = ChildProcess::Start({.name = "decode-0",
                                          .binary = "/bin/sh",
                                          .arguments = {"-c", "printf 'a\\nb'"},
                                          .log_file = ""});
        (*child)->WaitExit(seconds(10));
        child->reset();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "decode-0   \\| a\ndecode-0   \\| b\n");
}

}  // namespace
}  // namespace baton::cli
