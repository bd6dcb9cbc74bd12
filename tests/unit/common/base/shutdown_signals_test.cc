#include "common/base/shutdown_signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

namespace baton {
namespace {

TEST(ShutdownSignalsTest, DeliversOnAnotherThread) {
  std::promise<std::pair<int, std::thread::id>> got;
  ShutdownSignals signals(
      [&](int signal) { got.set_value({signal, std::this_thread::get_id()}); });
  kill(getpid(), SIGTERM);
  const auto [signal, thread] = got.get_future().get();
  EXPECT_EQ(signal, SIGTERM);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(ShutdownSignalsTest, DeliversEverySignal) {
  std::promise<int> promises[2];
  int count = 0;
  ShutdownSignals signals(
      [&](int signal) { promises[count++].set_value(signal); });
  kill(getpid(), SIGINT);
  EXPECT_EQ(promises[0].get_future().get(), SIGINT);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(promises[1].get_future().get(), SIGTERM);
}

TEST(ShutdownSignalsTest, WritingToAClosedPipeDoesNotKill) {
  ShutdownSignals signals([](int) {});
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  close(fds[0]);
  EXPECT_EQ(write(fds[1], "x", 1), -1);
  close(fds[1]);
}

TEST(ShutdownSignalsTest, RestoredChildDiesOfTheSignal) {
  ShutdownSignals signals([](int) {});
  const pid_t child = fork();
  if (child == 0) {
    ShutdownSignals::RestoreSignals();
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace baton
