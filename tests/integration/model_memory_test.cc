// What a worker's memory holds while and after it loads a model: the packed
// weights in huge pages, and no copy of the file.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/worker/process_memory.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/support/synthetic_model.h"

namespace baton::testing {
namespace {

constexpr uint64_t kMiB = 1 << 20;
// Program, libraries, tokenizer, threads, a pool of a few blocks.
constexpr uint64_t kBesideWeights = 64 * kMiB;

ProcessMemory MemoryOf(pid_t pid) {
  return ReadProcessMemory([pid](const std::string& path) {
    const size_t self = std::string("/proc/self").size();
    return SystemFiles()(absl::StrCat("/proc/", pid, path.substr(self)));
  });
}

// Resident bytes of the mappings for which huge pages were asked.
uint64_t AdvisedBytes(pid_t pid) {
  std::ifstream mappings(absl::StrCat("/proc/", pid, "/smaps"));
  uint64_t sum = 0, resident = 0;
  for (std::string line; std::getline(mappings, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "Rss:") words >> resident;
    if (name == "VmFlags:" && absl::StrContains(line + " ", " hg ")) {
      sum += resident << 10;
    }
  }
  return sum;
}

TEST(ModelMemoryTest, HoldsThePackedWeightsAndNoCopyOfTheFile) {
  std::string folder = ::testing::TempDir() + "baton-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto model = WriteSyntheticModel(
      folder, {.weights = SyntheticModelOptions::Weights::kQ8_0,
               .layers = 8,
               .vocabulary = 4096});
  ASSERT_TRUE(model.ok()) << model.status();
  const uint64_t file_bytes = std::filesystem::file_size(*model);
  ASSERT_GT(file_bytes, 350 * kMiB);
  auto worker = Process::Start({.binary = "baton-decode-worker",
                                .flags = {"--model=" + *model, "--threads=2",
                                          "--kv-blocks=8", "--max-context=128"},
                                .name = "memory",
                                .work_dir = folder});
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->WaitReady(std::chrono::seconds(120)).ok())
      << (*worker)->LogTail();

  // Q8_0 is as large packed as in the file.
  const ProcessMemory memory = MemoryOf((*worker)->pid());
  EXPECT_GT(memory.resident_bytes, file_bytes - kMiB);
  EXPECT_LT(memory.resident_bytes, file_bytes + kBesideWeights);
  EXPECT_LT(memory.peak_resident_bytes, file_bytes + kBesideWeights);
  EXPECT_LT(memory.peak_resident_bytes, file_bytes / 100 * 115);
  if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    EXPECT_GT(AdvisedBytes((*worker)->pid()), file_bytes / 100 * 98);
  }
  std::printf("file %zu MiB, resident %zu MiB, at most %zu MiB, huge %zu MiB\n",
              size_t{file_bytes / kMiB}, size_t{memory.resident_bytes / kMiB},
              size_t{memory.peak_resident_bytes / kMiB},
              size_t{memory.huge_page_bytes / kMiB});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace baton::testing
