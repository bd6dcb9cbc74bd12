// Workers with every source of guesses, undisturbed and preempted: the bits of
// an answer are those without guesses, and guesses were made and right.
// {off, n-gram, suffix, same model, other model} x {greedy, seeded}
// x {preempted 0, 1, 5 times} x {local, remote prefill} x {n = 1, 4}; what a
// preempted remote one had of its prompt is pushed once more or computed again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

constexpr uint32_t kTokens = 48;
// They end with a block and inside one, and are read in one chunk or more.
constexpr uint32_t kPrompts[] = {32, 41, 100};

v1::GenerateRequest MakeRequest(uint32_t prompt, bool seeded, uint32_t n) {
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < prompt; ++i) {
    request.mutable_token_ids()->add_ids(60 + i % 11);
  }
  request.set_max_tokens(kTokens);
  request.set_ignore_eos(true);
  request.set_logprobs(2);
  request.set_n(static_cast<int32_t>(n));
  auto* sampling = request.mutable_sampling();
  sampling->set_temperature(seeded ? 0.7f : 0.0f);
  sampling->set_seed(77);
  for (uint32_t token = 60; token < 64; ++token) {
    (*sampling->mutable_logit_bias())[token] = 8;
  }
  return request;
}

// Tokens, bits of their logprobs and text of every choice.
using Bits = std::vector<
    std::tuple<std::vector<uint32_t>, std::vector<uint32_t>, std::string>>;

Bits BitsOf(const Answer& answer) {
  Bits bits;
  for (const auto& [choice, tokens] : answer.tokens) {
    std::vector<uint32_t> logprobs;
    for (const float logprob : answer.logprobs.at(choice)) {
      logprobs.push_back(std::bit_cast<uint32_t>(logprob));
    }
    bits.emplace_back(tokens, std::move(logprobs), answer.text.at(choice));
  }
  return bits;
}

struct Arm {
  std::string guesses;
  std::vector<std::string> flags;
  bool local = false;
  int preemptions = 0;
  bool real = false;  // the two binaries; otherwise both workers in one
  std::string way = "recompute";  // in which the preempted come back

  std::string Name() const {
    return absl::StrCat(guesses, real ? " real" : "",
                        local ? " local" : " remote", ", preempted ",
                        preemptions, ", back by ", way);
  }
};

class SpeculationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const uint64_t seed : {36, 37}) {
      auto path = WriteTinyModel(::testing::TempDir(), {.seed = seed});
      ASSERT_TRUE(path.ok()) << path.status();
      models_.push_back(*path);
    }
  }
  std::vector<Arm> Arms() const {
    const std::map<std::string, std::vector<std::string>> sources = {
        {"off", {"--speculation=off"}},
        {"ngram", {"--speculation=ngram", "--draft-always"}},
        {"suffix", {"--speculation=suffix", "--draft-always"}},
        {"same model",
         {"--speculation=draft", "--draft-always", "--max-draft-tokens=5",
          absl::StrCat("--draft-model=", models_[0])}},
        {"other model",
         {"--speculation=draft", "--draft-always", "--max-draft-tokens=3",
          absl::StrCat("--draft-model=", models_[1])}}};
    std::vector<Arm> arms;
    for (const auto& [guesses, flags] : sources) {
      for (const bool local : {false, true}) {
        arms.push_back({guesses, flags, local, 0, true});
        for (const int preemptions : {0, 1, 5}) {
          arms.push_back({guesses, flags, local, preemptions});
          if (local || preemptions == 0) continue;
          arms.push_back({guesses, flags, local, preemptions, false, "push"});
        }
      }
    }
    return arms;
  }

  absl::StatusOr<std::unique_ptr<ProcessCluster>> Start(const Arm& arm) const {
    ClusterOptions options;
    options.model = models_[0];
    options.worker_flags = {"--threads=1", "--kv-blocks=200",
                            "--step-tokens=16", "--step-target=0ms"};
    options.loopback_pair = !arm.real;
    std::vector<std::string>& flags =
        arm.real ? options.decode_flags : options.worker_flags;
    flags.insert(flags.end(), arm.flags.begin(), arm.flags.end());
    flags.push_back(
        absl::StrCat("--disaggregation=", arm.local ? "never" : "always"));
    if (!arm.real) {
      flags.push_back(absl::StrCat("--forced-preemptions=", arm.preemptions));
      flags.push_back(absl::StrCat("--preempted-return=", arm.way));
    }
    return ProcessCluster::Start(options);
  }

  void Run(const Arm& arm) {
    SCOPED_TRACE(arm.Name());
    auto cluster = Start(arm);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    int requests = 0;
    for (const uint32_t prompt : kPrompts) {
      for (const bool seeded : {false, true}) {
        for (const uint32_t n : {1u, 4u}) {
          const std::string name =
              absl::StrCat(prompt, seeded ? " seeded" : " greedy", " n=", n);
          SCOPED_TRACE(name);
          const Answer got =
              (*cluster)->Generate(MakeRequest(prompt, seeded, n));
          ASSERT_TRUE(got.status.ok()) << got.status;
          CheckServed(got, arm, n);
          Compare(name, got);
          ++requests;
        }
      }
    }
    Process& decode = arm.real ? (*cluster)->decode(0) : (*cluster)->prefill(0);
    const auto preemptions = decode.Metric("baton_preemptions_total");
    ASSERT_TRUE(preemptions.ok()) << preemptions.status();
    EXPECT_EQ(*preemptions, arm.preemptions * requests);
    const auto returns = decode.Metric("baton_preempted_returns_total",
                                       absl::StrCat("way=\"", arm.way, "\""));
    ASSERT_TRUE(returns.ok()) << returns.status();
    EXPECT_EQ(*returns, arm.preemptions * requests);
    EXPECT_EQ((*cluster)->WaitPoolsIdle(std::chrono::seconds(10)),
              absl::OkStatus());
    EXPECT_EQ((*cluster)->Drain(), absl::OkStatus());
    ++arms_;
  }

  static void CheckServed(const Answer& got, const Arm& arm, uint32_t n) {
    EXPECT_EQ(got.served.prefill_worker(), arm.local ? "" : "prefill-0");
    ASSERT_EQ(got.tokens.size(), n);
    ASSERT_EQ(got.tokens.at(0).size(), kTokens);
    if (arm.guesses == "off") {
      EXPECT_EQ(got.served.drafted_tokens(), 0u);
      EXPECT_EQ(got.served.decode_steps(), kTokens - 1);
      return;
    }
    EXPECT_GT(got.served.drafted_tokens(), 0u);
    EXPECT_GT(got.served.accepted_tokens(), 0u);
    EXPECT_LT(got.served.decode_steps(), kTokens - 1);
    if (arm.guesses == "same model") {
      EXPECT_EQ(got.served.accepted_tokens(), got.served.drafted_tokens());
    }
  }

  void Compare(const std::string& name, const Answer& answer) {
    const std::lock_guard lock(mutex_);
    const Bits bits = BitsOf(answer);
    const auto [it, first] = truth_.emplace(name, bits);
    if (!first) ++compared_;
    EXPECT_EQ(bits, it->second);
  }

  std::vector<std::string> models_;  // the served one, another
  std::mutex mutex_;
  std::map<std::string, Bits> truth_;
  int compared_ = 0;
  std::atomic<int> arms_ = 0;
};

TEST_F(SpeculationTest, NeitherGuessesNorPreemptionsChangeABit) {
  const std::vector<Arm> arms = Arms();
  // A cluster of a tiny model mostly waits for its processes to start and end.
  std::atomic<size_t> next = 0;
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i) {
    runners.emplace_back([&] {
      for (size_t arm; (arm = next++) < arms.size();) Run(arms[arm]);
    });
  }
  for (std::thread& runner : runners) runner.join();
  EXPECT_EQ(arms_, 50);
  EXPECT_EQ(compared_, 49 * 12);
}

}  // namespace
}  // namespace baton::testing
