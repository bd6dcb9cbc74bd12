#include "common/base/core_dumps.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace baton {
namespace {

std::string Filter() {
  std::ifstream file("/proc/self/coredump_filter");
  std::string text;
  file >> text;
  return text;
}

// In a process of its own, which cannot go back.
TEST(CoreDumpsTest, ThereIsNothingToDump) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit some{1 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &some);
    if (Filter() == "00000000") std::_Exit(10);
    if (!ForbidCoreDumps().ok()) std::_Exit(11);
    rlimit now{};
    getrlimit(RLIMIT_CORE, &now);
    if (now.rlim_cur != 0 || now.rlim_max != 0) std::_Exit(12);
    if (Filter() != "00000000") std::_Exit(13);
    std::abort();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_FALSE(WCOREDUMP(status));
}

}  // namespace
}  // namespace baton
