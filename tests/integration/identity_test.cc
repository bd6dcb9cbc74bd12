// The same request gives the same tokens and logprobs, bit for bit, however
// the cluster that serves it is built: one process or two, over shared memory
// or TCP, any chunk size, instruction set and thread count, alone or in a
// crowd. Every arm first proves that it is what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

enum class Mode { kAggregated, kLoopback, kSharedMemory, kTcp, kGrpc };

struct Arm {
  Mode mode;
  int chunk;
  std::string isa;
  int threads;

  std::string Name() const {
    static constexpr const char* kModes[] = {"aggregated", "loopback",
                                             "ucx_shm", "ucx_tcp", "grpc"};
    return absl::StrCat(kModes[static_cast<int>(mode)], " chunk=", chunk, " ",
                        isa, " threads=", threads);
  }
};

// However busy the machine is.
constexpr auto kPatience = std::chrono::minutes(5);
constexpr int kLongest = 1500;  // tokens of a prompt

// What takes long without adding a path is left out: scalar kernels read some
// ten tokens a second.
int LongestFor(const Arm& arm) {
  if (arm.isa == "scalar") return 63;
  return arm.threads == 1 && arm.chunk == 16 ? 300 : kLongest;
}
int CrowdFor(const Arm& arm) { return arm.isa == "scalar" ? 3 : 8; }

struct Case {
  v1::GenerateRequest request;
  std::string name;
  int prompt_tokens;
};

// Tokens of one choice and the bits of their logprobs.
struct Bits {
  std::vector<uint32_t> tokens;
  std::vector<uint32_t> logprobs;
  std::string text;
  friend bool operator==(const Bits&, const Bits&) = default;
};

Bits BitsOf(const Answer& answer) {
  Bits bits;
  bits.tokens = answer.tokens.at(0);
  for (float value : answer.logprobs.at(0)) {
    bits.logprobs.push_back(std::bit_cast<uint32_t>(value));
  }
  bits.text = answer.text.at(0);
  return bits;
}

Case MakeCase(int prompt_tokens, bool seeded, uint32_t vocabulary) {
  Case c;
  c.prompt_tokens = prompt_tokens;
  c.name = absl::StrCat(prompt_tokens, seeded ? " seeded" : " greedy");
  std::mt19937 random(static_cast<uint32_t>(prompt_tokens * 2 + seeded));
  std::uniform_int_distribution<uint32_t> token(3, vocabulary - 1);
  for (int i = 0; i < prompt_tokens; ++i) {
    c.request.mutable_token_ids()->add_ids(token(random));
  }
  c.request.set_max_tokens(8);
  c.request.set_ignore_eos(true);
  c.request.set_logprobs(1);
  auto* sampling = c.request.mutable_sampling();
  sampling->set_temperature(seeded ? 0.9f : 0.0f);
  if (seeded) {
    sampling->set_seed(1234 + static_cast<uint64_t>(prompt_tokens));
    sampling->set_top_p(0.95f);
    sampling->set_repetition_penalty(1.1f);
  }
  return c;
}

absl::StatusOr<std::unique_ptr<ProcessCluster>> StartArm(
    const std::string& model, const Arm& arm) {
  ClusterOptions options;
  options.model = model;
  options.prefill = arm.mode == Mode::kAggregated ? 0 : 1;
  options.worker_flags = {absl::StrCat("--threads=", arm.threads),
                          absl::StrCat("--isa=", arm.isa),
                          absl::StrCat("--step-tokens=", arm.chunk),
                          "--step-target=0ms",
                          "--kv-blocks=600",
                          "--step-timeout=10m"};
  // Scalar steps take seconds, and on a busy machine many.
  options.router_flags = {"--stall-timeout=10m"};
  options.loopback_pair = arm.mode == Mode::kLoopback;
  if (!options.loopback_pair)
    options.decode_flags = {
        absl::StrCat("--disaggregation=",
                     arm.mode == Mode::kAggregated ? "never" : "always")};
  if (arm.mode == Mode::kSharedMemory) {
    options.environment["UCX_TLS"] = "self,sysv,posix,cma";
  } else if (arm.mode == Mode::kTcp) {
    options.environment["UCX_TLS"] = "self,tcp";
  } else if (arm.mode == Mode::kGrpc) {
    options.worker_flags.push_back("--transport=grpc");
  }
  return ProcessCluster::Start(options);
}

void CheckArm(ProcessCluster& cluster, const Arm& arm) {
  const v1::GetClusterInfoResponse info = cluster.Info();
  ASSERT_GT(info.workers_size(), 0);
  for (const v1::WorkerInfo& worker : info.workers()) {
    const auto& features = worker.hello().cpu_features();
    EXPECT_THAT(
        std::vector<std::string>(features.begin(), features.end()),
        ::testing::IsSupersetOf({absl::StrCat("isa=", arm.isa),
                                 absl::StrCat("threads=", arm.threads)}))
        << worker.address();
  }
}

void CheckServed(const Answer& answer, const Arm& arm, int prompt_tokens,
                 uint64_t block_bytes, bool alone) {
  const int chunks = (prompt_tokens + arm.chunk - 1) / arm.chunk;
  if (alone) {
    EXPECT_EQ(answer.served.prefill_chunks(), static_cast<uint32_t>(chunks));
  }
  const uint64_t blocks = static_cast<uint64_t>(prompt_tokens + 15) / 16;
  if (arm.mode == Mode::kAggregated) {
    EXPECT_EQ(answer.served.kv_bytes_moved(), 0u);
    EXPECT_EQ(answer.served.prefill_worker(), "");
  } else {
    EXPECT_EQ(answer.served.transport(), arm.mode == Mode::kLoopback
                                             ? "loopback"
                                         : arm.mode == Mode::kGrpc ? "grpc"
                                                                   : "ucx");
    EXPECT_EQ(answer.served.kv_blocks_moved(), blocks);
    EXPECT_EQ(answer.served.kv_bytes_moved(), blocks * block_bytes);
    EXPECT_EQ(answer.served.prefill_worker(), "prefill-0");
  }
  EXPECT_EQ(answer.served.decode_worker(), "decode-0");
}

std::vector<Bits> RunAlone(ProcessCluster& cluster, const Arm& arm,
                           const std::vector<Case>& cases,
                           uint64_t block_bytes) {
  std::vector<Bits> all;
  for (const Case& c : cases) {
    const Answer answer = cluster.Generate(c.request, nullptr, kPatience);
    EXPECT_TRUE(answer.status.ok()) << c.name << ": " << answer.status;
    if (!answer.status.ok()) return {};
    CheckServed(answer, arm, c.prompt_tokens, block_bytes, true);
    all.push_back(BitsOf(answer));
  }
  return all;
}

std::vector<Bits> RunInCrowd(ProcessCluster& cluster, const Arm& arm,
                             const std::vector<Case>& cases,
                             uint64_t block_bytes, uint32_t vocabulary) {
  std::vector<Bits> all;
  for (const Case& c : cases) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> crowd;
    std::atomic<int> flowing = 0;
    for (int i = 0; i < CrowdFor(arm); ++i) {
      crowd.emplace_back([&, i] {
        Case other = MakeCase(5 + 9 * i, i % 2 == 0, vocabulary);
        other.request.set_max_tokens(120);
        bool counted = false;
        const auto count = [&](const v1::GenerateEvent&) {
          if (!counted) ++flowing;
          counted = true;
          return !stop.load();
        };
        cluster.Generate(other.request, count, kPatience);
      });
    }
    const MonotonicTime give_up = MonotonicNow() + kPatience;
    while (flowing < CrowdFor(arm) && MonotonicNow() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(flowing, CrowdFor(arm)) << "the crowd did not come together";
    const Answer answer = cluster.Generate(c.request, nullptr, kPatience);
    stop = true;
    for (std::thread& thread : crowd) thread.join();
    EXPECT_TRUE(answer.status.ok()) << c.name << ": " << answer.status;
    if (!answer.status.ok()) return {};
    CheckServed(answer, arm, c.prompt_tokens, block_bytes, false);
    all.push_back(BitsOf(answer));
  }
  return all;
}

class Identity {
 public:
  Identity(std::string model, std::vector<int> alone, std::vector<int> crowd)
      : model_(std::move(model)), alone_(alone), crowd_(crowd) {}

  // Several at a time: a cluster uses both cores only now and then, and waits
  // for its own processes to start and to end.
  void RunAll(const std::vector<Arm>& arms, int at_once) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> runners;
    for (int i = 0; i < at_once; ++i) {
      runners.emplace_back([&] {
        for (size_t arm; (arm = next++) < arms.size();) Run(arms[arm]);
      });
    }
    for (std::thread& runner : runners) runner.join();
  }

  int arms() const { return arms_; }
  size_t compared() const { return compared_; }

 private:
  void Run(const Arm& arm) {
    SCOPED_TRACE(arm.Name());
    auto cluster = StartArm(model_, arm);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    CheckArm(**cluster, arm);
    const v1::WorkerHello hello = (*cluster)->Info().workers(0).hello();
    const uint32_t vocabulary = hello.vocabulary_size();
    const int longest = LongestFor(arm);
    std::vector<Case> cases = Cases(alone_, longest, vocabulary);
    Compare(cases, RunAlone(**cluster, arm, cases, hello.block_bytes()));
    cases = Cases(crowd_, longest, vocabulary);
    Compare(cases,
            RunInCrowd(**cluster, arm, cases, hello.block_bytes(), vocabulary));
    EXPECT_EQ((*cluster)->WaitPoolsIdle(std::chrono::seconds(10)),
              absl::OkStatus());
    EXPECT_EQ((*cluster)->Drain(), absl::OkStatus());
    ++arms_;
  }

  static std::vector<Case> Cases(const std::vector<int>& lengths, int longest,
                                 uint32_t vocabulary) {
    std::vector<Case> cases;
    for (int length : lengths) {
      if (length > longest) continue;
      cases.push_back(MakeCase(length, true, vocabulary));
      // Greedy differs in the draws only: the longest prompts are read once.
      if (length <= std::min(150, longest / 3)) {
        cases.push_back(MakeCase(length, false, vocabulary));
      }
    }
    return cases;
  }

  void Compare(const std::vector<Case>& cases, const std::vector<Bits>& got) {
    ASSERT_EQ(got.size(), cases.size());
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < cases.size(); ++i) {
      ASSERT_EQ(got[i].tokens.size(), 8u) << cases[i].name;
      ASSERT_EQ(got[i].logprobs.size(), 8u) << cases[i].name;
      auto [it, first] = truth_.emplace(cases[i].name, got[i]);
      if (first) continue;
      ++compared_;
      EXPECT_EQ(got[i].tokens, it->second.tokens) << cases[i].name;
      EXPECT_EQ(got[i].logprobs, it->second.logprobs) << cases[i].name;
      EXPECT_EQ(got[i].text, it->second.text) << cases[i].name;
    }
  }

  std::string model_;
  std::vector<int> alone_, crowd_;
  std::mutex mutex_;
  std::map<std::string, Bits> truth_;
  std::atomic<int> arms_ = 0;
  std::atomic<size_t> compared_ = 0;
};

// The last instruction set of this machine, AMX where it has it.
std::string WideIsa() {
  std::string wide;
  for (const kernels::Isa isa : kernels::kIsas) {
    if (kernels::IsSupported(isa)) wide = kernels::IsaName(isa);
  }
  return wide;
}

// Every pair of {mode} x {chunk} x {ISA} x {threads}.
TEST(IdentityTest, RealModelPairs) {
  auto model = SmolLm2Path();
  ASSERT_TRUE(model.ok()) << model.status();
  Identity identity(*model, {1, 16, 17, 63, 300, kLongest}, {17, 300});
  const std::string wide = WideIsa();
  const std::vector<Arm> arms = {
      {Mode::kAggregated, 64, "scalar", 2},
      {Mode::kAggregated, 16, "avx2", 2},
      {Mode::kAggregated, 64, wide, 1},
      {Mode::kAggregated, 512, wide, 2},
      {Mode::kLoopback, 16, wide, 2},
      {Mode::kLoopback, 64, wide, 1},
      {Mode::kLoopback, 512, "avx2", 2},
      {Mode::kSharedMemory, 16, wide, 1},
      {Mode::kSharedMemory, 64, "avx2", 2},
      {Mode::kSharedMemory, 512, wide, 2},
      {Mode::kTcp, 16, wide, 2},
      {Mode::kTcp, 64, wide, 1},
      {Mode::kTcp, 512, "avx2", 1},
      {Mode::kGrpc, 64, wide, 2},
  };
  identity.RunAll(arms, /*at_once=*/2);
  EXPECT_EQ(identity.arms(), 14);
  EXPECT_GT(identity.compared(), 100u);
}

// The full product on the tiny model.
TEST(IdentityTest, TinyModelProduct) {
  TinyModelOptions options;
  options.weights = TinyModelOptions::Weights::kQ4_1;
  auto model = WriteTinyModel(::testing::TempDir(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  Identity identity(*model, {1, 15, 16, 33, 150}, {33});
  std::vector<std::string> isas;
  for (const kernels::Isa isa : kernels::kIsas) {
    if (isa != kernels::Isa::kAvxVnni && kernels::IsSupported(isa)) {
      isas.emplace_back(kernels::IsaName(isa));
    }
  }
  std::vector<Arm> arms;
  for (Mode mode :
       {Mode::kAggregated, Mode::kLoopback, Mode::kSharedMemory, Mode::kTcp}) {
    for (int chunk : {16, 64, 512}) {
      for (const std::string& isa : isas) {
        for (int threads : {1, 2}) {
          arms.push_back({mode, chunk, isa, threads});
        }
      }
    }
  }
  for (const std::string& isa : isas) {
    arms.push_back({Mode::kGrpc, 16, isa, 2});
  }
  identity.RunAll(arms, /*at_once=*/3);
  EXPECT_EQ(identity.arms(), static_cast<int>(25 * isas.size()));
}

}  // namespace
}  // namespace baton::testing
