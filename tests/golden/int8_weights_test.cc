// What int8 weights cost: KL divergence of every next-token distribution from
// that of the same model with F32 weights.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "nlohmann/json.hpp"
#include "tests/support/generation.h"
#include "tests/support/model_under_test.h"
#include "tests/support/synthetic_model.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

constexpr double kMaxMeanKl = 0.002;

using Texts = std::vector<std::vector<TokenId>>;
using Logits = std::vector<std::vector<float>>;

ModelUnderTest Load(const std::string& path, WeightFormat format) {
  auto backend = kernels::MakeCpuBackend({.threads = 2});
  EXPECT_TRUE(backend.ok()) << backend.status();
  auto loaded = ModelUnderTest::Load(
      path, *std::move(backend),
      {.kv_type = kernels::KvType::kF32, .load = {.format = format}});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return *std::move(loaded);
}

Logits LogitsOf(const Model& model, const Texts& texts) {
  Logits logits;
  for (const std::vector<TokenId>& text : texts) {
    ForEachLogits(model, text, 64, 0, [&](int, absl::Span<const float> row) {
      logits.emplace_back(row.begin(), row.end());
    });
  }
  return logits;
}

// Σ p log(p / q) in double precision.
double Divergence(const std::vector<float>& p, const std::vector<float>& q) {
  const double p_sum = LogSumExp(p), q_sum = LogSumExp(q);
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_sum;
    divergence += std::exp(log_p) * (log_p - (q[i] - q_sum));
  }
  return divergence;
}

void ExpectNearF32(const std::string& path, const Texts& texts) {
  const ModelUnderTest f32 = Load(path, WeightFormat::kFile);
  const ModelUnderTest int8 = Load(path, WeightFormat::kInt8);
  EXPECT_LT(int8.model->weight_bytes(), f32.model->weight_bytes());
  EXPECT_NE(int8.model->fingerprint(), f32.model->fingerprint());
  const Logits expected = LogitsOf(*f32.model, texts);
  const Logits actual = LogitsOf(*int8.model, texts);
  ASSERT_EQ(actual.size(), expected.size());
  double sum = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double divergence = Divergence(expected[i], actual[i]);
    sum += divergence;
    largest = std::max(largest, divergence);
  }
  std::printf("%zu positions: KL %.6f on average, %.6f at most\n",
              expected.size(), sum / expected.size(), largest);
  EXPECT_GT(sum, 0.0);
  EXPECT_LE(sum / expected.size(), kMaxMeanKl);
}

TEST(Int8WeightsTest, TinyModelStaysNearF32) {
  const auto path = WriteTinyModel(testing::TempDir(), {});
  ASSERT_TRUE(path.ok()) << path.status();
  std::ifstream file(BATON_GOLDEN_DATA "/tiny/ref_llama_f32.json");
  Texts prompts;
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const nlohmann::json& prompt : golden["prompts"]) {
    prompts.push_back(prompt["ids"].get<std::vector<TokenId>>());
  }
  ASSERT_FALSE(prompts.empty());
  ExpectNearF32(*path, prompts);
  ExpectNearF32(*path, {PseudoText(256, 272, 3), PseudoText(256, 272, 4)});
}

TEST(Int8WeightsTest, SyntheticModelStaysNearF32) {
  const auto path = WriteSyntheticModel(
      testing::TempDir(), {.weights = SyntheticModelOptions::Weights::kF32,
                           .layers = 8,
                           .width = 256,
                           .heads = 8,
                           .kv_heads = 2,
                           .ffn_width = 704,
                           .vocabulary = 4096});
  ASSERT_TRUE(path.ok()) << path.status();
  ExpectNearF32(*path, {PseudoText(256, 4096, 3)});
}

}  // namespace
}  // namespace baton
