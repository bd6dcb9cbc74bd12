#include "common/worker/process_memory.h"

#include <string>

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(ProcessMemoryTest, ReadsTheKernelsFigures) {
  const ProcessMemory memory = ReadProcessMemory(
      [](const std::string& path) -> std::optional<std::string> {
        if (path == "/proc/self/status") {
          return "Name:\tbaton\nVmPeak:\t  900 kB\nVmHWM:\t  700 kB\n"
                 "VmRSS:\t   20 kB\n";
        }
        if (path == "/proc/self/smaps_rollup") {
          return "Rss:      20 kB\nAnonHugePages:      2048 kB\n";
        }
        return std::nullopt;
      });
  EXPECT_EQ(memory.peak_resident_bytes, 700u << 10);
  EXPECT_EQ(memory.resident_bytes, 20u << 10);
  EXPECT_EQ(memory.huge_page_bytes, 2048u << 10);
}

TEST(ProcessMemoryTest, IsZeroWhereTheKernelIsSilent) {
  const ProcessMemory memory = ReadProcessMemory(
      [](const std::string&) -> std::optional<std::string> { return {}; });
  EXPECT_EQ(memory.resident_bytes, 0u);
  EXPECT_EQ(memory.peak_resident_bytes, 0u);
  EXPECT_EQ(memory.huge_page_bytes, 0u);
}

TEST(ProcessMemoryTest, KnowsThisProcess) {
  const ProcessMemory memory = ReadProcessMemory(SystemFiles());
  EXPECT_GT(memory.resident_bytes, 1u << 20);
  EXPECT_GE(memory.peak_resident_bytes, memory.resident_bytes / 2);
}

}  // namespace
}  // namespace baton
