// What a worker's memory holds while and after it loads a model: the packed
// weights in huge pages, and no copy of the file.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/worker/process_memory.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/support/process_cluster.h"
#include "tests/support/synthetic_model.h"
#include "tests/support/tiny_model.h"

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

// Guesses are made by default. Their indexes over many long texts, more than
// fit what they may take, leave the worker within the same bound.
TEST(ModelMemoryTest, LongTextsThatAreGuessedStayWithinTheBound) {
  constexpr uint32_t kBlocks = 14000, kPrompt = 6000, kRequests = 32;
  constexpr uint64_t kDrafterMemory = 16 * kMiB;  // the default
  const auto model = WriteTinyModel(::testing::TempDir(), {.context = 8192});
  ASSERT_TRUE(model.ok()) << model.status();
  ClusterOptions options;
  options.model = *model;
  options.prefill = 0;
  options.worker_flags = {absl::StrCat("--kv-blocks=", kBlocks), "--threads=2"};
  options.decode_flags = {"--step-tokens=1024", "--speculation=suffix"};
  auto cluster = ProcessCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const v1::WorkerHello hello = (*cluster)->Info().workers(0).hello();
  const uint64_t pool = kBlocks * hello.block_bytes();

  std::vector<std::thread> clients;
  std::atomic<uint32_t> answered = 0;
  for (uint32_t i = 0; i < kRequests; ++i) {
    clients.emplace_back([&, i] {
      v1::GenerateRequest request;
      std::mt19937 random(i);
      for (uint32_t token = 0; token < kPrompt; ++token) {
        request.mutable_token_ids()->add_ids(3 + random() % 260);
      }
      request.set_max_tokens(200);
      request.set_ignore_eos(true);
      const Answer answer =
          (*cluster)->Generate(request, nullptr, std::chrono::seconds(240));
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      if (answer.status.ok()) ++answered;
    });
  }
  double most = 0;
  while (answered < kRequests && !::testing::Test::HasFailure()) {
    const auto held = (*cluster)->decode(0).Metric("baton_drafter_bytes");
    EXPECT_TRUE(held.ok()) << held.status();
    if (!held.ok()) break;  // the clients are still to be joined
    most = std::max(most, *held);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(most, 0.7 * kDrafterMemory);
  EXPECT_LE(most, kDrafterMemory);
  const uint64_t peak =
      MemoryOf((*cluster)->decode(0).pid()).peak_resident_bytes;
  EXPECT_LT(peak, std::filesystem::file_size(*model) + pool + kBesideWeights);
  std::printf("drafters %zu MiB, pool %zu MiB, resident at most %zu MiB\n",
              size_t(most) >> 20, size_t{pool >> 20}, size_t{peak >> 20});
  EXPECT_EQ((*cluster)->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
  const auto held = (*cluster)->decode(0).Metric("baton_drafter_bytes");
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(*held, 0);
}

}  // namespace
}  // namespace baton::testing
