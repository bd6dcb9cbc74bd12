#include "common/worker/resource_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace baton {
namespace {

using testing::HasSubstr;

ReadSmallFile Files(std::map<std::string, std::string> files) {
  return [files = std::move(files)](
             const std::string& path) -> std::optional<std::string> {
    auto it = files.find(path);
    if (it == files.end()) return std::nullopt;
    return it->second;
  };
}

TEST(ParseCpuMax, ReadsQuotaOverPeriod) {
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("max 100000"), std::nullopt);
  EXPECT_EQ(ParseCpuMax("100000 0"), std::nullopt);
  EXPECT_EQ(ParseCpuMax(""), std::nullopt);
  EXPECT_EQ(ParseCpuMax("1 2 3"), std::nullopt);
  EXPECT_EQ(ParseCpuMax("-5 100"), std::nullopt);
}

TEST(ThreadLimit, AffinityWithoutCgroup) {
  const Limit limit = ThreadLimit(6, Files({}));
  EXPECT_EQ(limit.value, 6u);
  EXPECT_THAT(limit.reason, HasSubstr("affinity"));
  EXPECT_EQ(ThreadLimit(0, Files({})).value, 1u);
}

TEST(ThreadLimit, TightestCgroupOnThePathCounts) {
  const Limit limit = ThreadLimit(
      8, Files({{"/proc/self/cgroup", "0::/pod/container\n"},
                {"/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n"},
                {"/sys/fs/cgroup/pod/cpu.max", "250000 100000\n"},
                {"/sys/fs/cgroup/cpu.max", "700000 100000\n"}}));
  EXPECT_EQ(limit.value, 3u);
  EXPECT_THAT(limit.reason, HasSubstr("/sys/fs/cgroup/pod/cpu.max"));
}

TEST(ThreadLimit, FractionOfACpuIsOneThread) {
  EXPECT_EQ(
      ThreadLimit(4, Files({{"/sys/fs/cgroup/cpu.max", "1000 100000"}})).value,
      1u);
}

TEST(MemoryLimit, SmallerOfHostAndCgroup) {
  std::map<std::string, std::string> files = {
      {"/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    4096 kB\n"},
      {"/proc/self/cgroup", "1:name=x:/\n0::/a\n"}};
  EXPECT_EQ(MemoryLimit(Files(files)).value, 4096u << 10);
  files["/sys/fs/cgroup/a/memory.max"] = "1000000\n";
  files["/sys/fs/cgroup/a/memory.current"] = "400000\n";
  const Limit limit = MemoryLimit(Files(files));
  EXPECT_EQ(limit.value, 600000u);
  EXPECT_THAT(limit.reason, HasSubstr("/sys/fs/cgroup/a/memory.max"));
  files["/sys/fs/cgroup/a/memory.current"] = "2000000\n";
  EXPECT_EQ(MemoryLimit(Files(files)).value, 0u);
  files["/sys/fs/cgroup/a/memory.max"] = "max\n";
  EXPECT_EQ(MemoryLimit(Files(files)).value, 4096u << 10);
}

TEST(ResourceLimits, ThisMachineHasSome) {
  EXPECT_GE(AffinityCpus(), 1u);
  EXPECT_GE(ThreadLimit(AffinityCpus(), SystemFiles()).value, 1u);
  EXPECT_GT(MemoryLimit(SystemFiles()).value, 0u);
  EXPECT_EQ(SystemFiles()("/no/such/file"), std::nullopt);
}

}  // namespace
}  // namespace baton
