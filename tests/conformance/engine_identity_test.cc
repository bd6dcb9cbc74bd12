// Property 1: tokens and logprobs are the same bits whatever the chunk size,
// the batch, the backend, the instruction set and the number of threads.
#include <bit>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/engine/engine.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/generation.h"
#include "tests/support/model_under_test.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using kernels::Isa;
using kernels::KvType;
using Weights = TinyModelOptions::Weights;

constexpr uint32_t kWhole = 1u << 20;  // a chunk no prompt fills
constexpr uint32_t kOthers = 8;        // joining at steps 0, 1 and 2
constexpr uint32_t kTarget = 4;        // its place among the others
constexpr uint32_t kMaxRows = 2048;

// Where a model runs. kAuto stands for the reference backend.
struct Runner {
  Isa isa = Isa::kAuto;
  int threads = 1;

  std::string name() const {
    return isa == Isa::kAuto ? "reference" : "cpu-" + std::string(IsaName(isa));
  }
  std::unique_ptr<kernels::Backend> Make() const {
    if (isa == Isa::kAuto) return kernels::MakeReferenceBackend();
    auto backend = kernels::MakeCpuBackend({.isa = isa, .threads = threads});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }
};

std::vector<Runner> CpuRunners(absl::Span<const Isa> isas) {
  std::vector<Runner> runners;
  for (const Isa isa : isas) {
    if (!kernels::IsSupported(isa)) {
      std::printf("cpu-%s: not on this machine, left out\n",
                  std::string(IsaName(isa)).c_str());
      continue;
    }
    runners.push_back({isa, 1});
    runners.push_back({isa, 2});
  }
  return runners;
}

struct Arm {
  uint32_t chunk;
  bool alone;
  bool greedy;
};

// A model, loaded on one runner, and what runs it.
class Host {
 public:
  Host(const std::string& path, const Runner& runner, KvType kv_type) {
    auto loaded =
        ModelUnderTest::Load(path, runner.Make(), {.kv_type = kv_type});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (!loaded.ok()) return;
    loaded_ = *std::move(loaded);
    EXPECT_EQ(loaded_.backend->name(), runner.name());
    EXPECT_EQ(loaded_.backend->threads(), runner.threads);
    engine_ = std::make_unique<Engine>(loaded_.model.get(), kMaxRows);
  }

  // What becomes of a prompt of `length` tokens.
  Completion Run(const Arm& arm, uint32_t length, uint32_t tokens) {
    const auto vocabulary =
        static_cast<uint32_t>(loaded_.model->config().vocabulary);
    const auto params = std::make_shared<SamplingParams>();
    params->temperature = arm.greedy ? 0.0f : 0.9f;
    params->top_k = 40;
    params->top_p = 0.95f;
    params->repetition_penalty = 1.1f;
    params->seed = 20240607;
    params->logprobs = true;
    params->top_logprobs = 4;
    const GenerationRequest target{.prompt = PseudoText(length, vocabulary, 1),
                                   .params = params,
                                   .tokens = tokens,
                                   .first_step = 0};
    if (arm.alone) {
      return Generate(engine_.get(), *loaded_.model, {&target, 1}, arm.chunk)
          .front();
    }
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < kOthers; ++i) {
      if (i == kTarget) requests.push_back(target);
      requests.push_back({.prompt = PseudoText(1 + i * 6, vocabulary, 100 + i),
                          .params = params,
                          .tokens = tokens + 4,
                          .first_step = i % 3});
    }
    return Generate(engine_.get(), *loaded_.model, requests,
                    arm.chunk)[kTarget];
  }

 private:
  ModelUnderTest loaded_;
  std::unique_ptr<Engine> engine_;
};

// Asserts that the arm was what it says.
void ExpectArm(const Completion& completion, const Arm& arm, uint32_t length) {
  EXPECT_EQ(completion.prefill_steps, (length + arm.chunk - 1) / arm.chunk);
  EXPECT_EQ(completion.largest_batch > 5, !arm.alone);
}

void ExpectSameBits(const Completion& got, const Completion& expected) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  ASSERT_EQ(got.tokens.size(), expected.tokens.size());
  for (size_t i = 0; i < got.tokens.size(); ++i) {
    SCOPED_TRACE("token " + std::to_string(i));
    const SampledToken& a = got.tokens[i];
    const SampledToken& b = expected.tokens[i];
    ASSERT_EQ(a.token, b.token);
    ASSERT_EQ(bits(a.logprob), bits(b.logprob));
    ASSERT_EQ(a.top.size(), b.top.size());
    for (size_t k = 0; k < a.top.size(); ++k) {
      ASSERT_EQ(a.top[k].token, b.top[k].token);
      ASSERT_EQ(bits(a.top[k].logprob), bits(b.top[k].logprob));
    }
  }
}

std::string Describe(const Runner& runner, const Arm& arm, uint32_t length) {
  return runner.name() + ", " + std::to_string(runner.threads) +
         " threads, chunk " + std::to_string(arm.chunk) +
         (arm.alone ? ", alone" : ", among others") +
         (arm.greedy ? ", greedy" : ", seeded") + ", prompt " +
         std::to_string(length);
}

struct TinyCase {
  const char* name;
  Weights weights;
  KvType kv_type;
};

class TinyIdentityTest : public testing::TestWithParam<TinyCase> {};

TEST_P(TinyIdentityTest, FullProduct) {
  const auto path =
      WriteTinyModel(testing::TempDir(), {.weights = GetParam().weights});
  ASSERT_TRUE(path.ok()) << path.status();
  constexpr uint32_t kTokens = 8;
  const std::vector<uint32_t> lengths = {1, 16, 65, 200};
  std::vector<Arm> arms;
  for (const uint32_t chunk : {16u, 64u, kWhole}) {
    for (const bool alone : {true, false}) {
      for (const bool greedy : {true, false}) {
        arms.push_back({chunk, alone, greedy});
      }
    }
  }

  std::map<std::pair<uint32_t, bool>, Completion> expected;
  Host reference(*path, {}, GetParam().kv_type);
  for (const uint32_t length : lengths) {
    for (const bool greedy : {true, false}) {
      expected[{length, greedy}] =
          reference.Run({kWhole, true, greedy}, length, kTokens);
    }
  }
  std::vector<Runner> runners = CpuRunners(kernels::kIsas);
  runners.push_back({});
  int compared = 0;
  for (const Runner& runner : runners) {
    Host host(*path, runner, GetParam().kv_type);
    for (const Arm& arm : arms) {
      for (const uint32_t length : lengths) {
        SCOPED_TRACE(Describe(runner, arm, length));
        const Completion completion = host.Run(arm, length, kTokens);
        ExpectArm(completion, arm, length);
        ExpectSameBits(completion, expected.at({length, arm.greedy}));
        ++compared;
      }
    }
  }
  std::printf("%d arms equal one another\n", compared);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, TinyIdentityTest,
    testing::Values(
        TinyCase{"F32WeightsF16Cache", Weights::kF32, KvType::kF16},
        TinyCase{"F32WeightsF32Cache", Weights::kF32, KvType::kF32},
        TinyCase{"Q4_1WeightsF16Cache", Weights::kQ4_1, KvType::kF16},
        TinyCase{"F32WeightsI8Cache", Weights::kF32, KvType::kI8},
        TinyCase{"Q4_1WeightsI8Cache", Weights::kQ4_1, KvType::kI8}),
    [](const auto& test) { return std::string(test.param.name); });

// Arms follow one another in turn, so that over all prompts every pair of
// runner, chunk size, batch and sampling occurs; runs are compared within
// (prompt, sampling).
class SmolLm2IdentityTest : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 6;

  void Run(size_t runner, const Arm& arm, uint32_t length) {
    SCOPED_TRACE(Describe(runners_[runner], arm, length));
    const Completion completion = hosts_[runner]->Run(arm, length, kTokens);
    ExpectArm(completion, arm, length);
    const auto [first, is_first] =
        expected_.try_emplace({length, arm.greedy}, completion);
    if (is_first) return;
    ExpectSameBits(completion, first->second);
    ++compared_;
  }

  bool Open(const Runner& runner) {
    runners_.push_back(runner);
    hosts_.push_back(
        std::make_unique<Host>(RealModelPath(), runner, KvType::kF16));
    return !HasFailure();
  }

  std::vector<Runner> runners_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::pair<uint32_t, bool>, Completion> expected_;
  int compared_ = 0;
};

constexpr char kNoModel[] =
    "tests/run.sh fetches the real model, or set BATON_MODEL_DIR.";

TEST_F(SmolLm2IdentityTest, VectorisedArmsUpTo1500Tokens) {
  for (const Runner& runner :
       CpuRunners({Isa::kAmx, Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx2})) {
    ASSERT_TRUE(Open(runner)) << kNoModel;
  }
  const Arm arms[] = {
      {16, true, true},   {64, false, false},    {512, true, false},
      {16, false, true},  {kWhole, false, true}, {64, true, false},
      {512, false, true}, {16, false, false},    {kWhole, true, false}};
  size_t turn = 0;
  for (const uint32_t length : {1, 15, 16, 17, 64, 65, 255, 512, 513}) {
    for (size_t runner = 0; runner < runners_.size(); ++runner) {
      Run(runner, arms[turn++ % std::size(arms)], length);
    }
  }
  Run(0, {512, true, true}, 1500);
  Run(runners_.size() - 1, {64, false, true}, 1500);
  std::printf("%d arms equal the first of their prompt\n", compared_);
  EXPECT_GE(compared_, static_cast<int>(runners_.size()) * 4);
}

TEST_F(SmolLm2IdentityTest, ScalarArmsUpTo64Tokens) {
  ASSERT_TRUE(Open({Isa::kAvx2, 2})) << kNoModel;
  ASSERT_TRUE(Open({Isa::kScalar, 1})) << kNoModel;
  ASSERT_TRUE(Open({Isa::kScalar, 2})) << kNoModel;
  for (const bool greedy : {true, false}) {
    Run(0, {kWhole, true, greedy}, 1);
    Run(1, {16, true, greedy}, 1);
  }
  Run(0, {kWhole, true, false}, 17);
  Run(1, {16, true, false}, 17);
  Run(0, {16, true, true}, 64);
  Run(2, {kWhole, true, true}, 64);
  EXPECT_EQ(compared_, 4);
}

}  // namespace
}  // namespace baton
