// Mean negative log likelihood and KL divergence of SmolLM2 over a real text,
// against an independent fp32 reference.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/golden/smollm2_fixture.h"

namespace baton {
namespace {

constexpr int kChunk = 128;
constexpr double kNllTolerance = 0.003;  // relative, of the mean
constexpr double kMeanKl = 0.005;        // nat per position
constexpr double kInt8CacheKl = 0.003;   // what an INT8 cache may add

class NllGoldenTest : public SmolLm2Test {};

// KL(reference || model) at one position; the reference lists its 64 likeliest
// tokens and the probability of all others together.
double KlDivergence(const nlohmann::json& reference,
                    absl::Span<const float> logits) {
  const auto ids = reference["top_ids"].get<std::vector<TokenId>>();
  const auto logprobs = reference["top_logprobs"].get<std::vector<double>>();
  const double rest = reference["rest"].get<double>();
  const double log_sum = LogSumExp(logits);
  double divergence = 0;
  double model_rest = 1;
  for (size_t i = 0; i < ids.size(); ++i) {
    const double model_logprob = logits[ids[i]] - log_sum;
    divergence += std::exp(logprobs[i]) * (logprobs[i] - model_logprob);
    model_rest -= std::exp(model_logprob);
  }
  return divergence + rest * std::log(rest / model_rest);
}

// What a model makes of the golden text.
struct Quality {
  int scored = 0;
  int compared = 0;
  double nll = 0;  // mean, nat per token
  double kl = 0;   // mean, nat per position
  double largest_kl = 0;
};

Quality Measure(const Model& model, const nlohmann::json& golden) {
  const auto ids = golden["ids"].get<std::vector<TokenId>>();
  const int window = golden["window"].get<int>();
  const nlohmann::json& kl = golden["kl"];
  const int kl_window = kl["window"].get<int>();
  const int kl_first = kl["positions"][0]["row"].get<int>();
  const int kl_count = static_cast<int>(kl["positions"].size());
  const int windows = static_cast<int>(golden["nll"].size());
  Quality sum;
  for (int w = 0; w < windows; ++w) {
    const absl::Span<const TokenId> tokens =
        absl::MakeConstSpan(ids).subspan(w * window, window);
    ForEachLogits(
        model, tokens, kChunk, 0,
        [&](int position, absl::Span<const float> logits) {
          if (position + 1 < window) {
            sum.nll += LogSumExp(logits) - logits[tokens[position + 1]];
            ++sum.scored;
          }
          const int k = position - kl_first;
          if (w != kl_window || k < 0 || k >= kl_count) return;
          ASSERT_EQ(kl["positions"][k]["row"].get<int>(), position);
          const double divergence = KlDivergence(kl["positions"][k], logits);
          sum.kl += divergence;
          sum.largest_kl = std::max(sum.largest_kl, divergence);
          ++sum.compared;
        });
  }
  sum.nll /= sum.scored;
  sum.kl /= sum.compared;
  return sum;
}

Quality MeasureAndPrint(const char* name, const Model& model,
                        const nlohmann::json& golden) {
  const Quality quality = Measure(model, golden);
  const double expected = golden["mean_nll"].get<double>();
  std::printf(
      "%s: mean NLL %.6f, reference %.6f: %+.3f %%; KL per position: mean "
      "%.5f, largest %.5f nat\n",
      name, quality.nll, expected, (quality.nll / expected - 1) * 100,
      quality.kl, quality.largest_kl);
  EXPECT_EQ(quality.scored, 4088);
  EXPECT_EQ(quality.compared, 64);
  EXPECT_GT(quality.kl, 0);
  EXPECT_NEAR(quality.nll / expected, 1, kNllTolerance);
  return quality;
}

TEST_F(NllGoldenTest, MeanNllAndKlAreNearTheReference) {
  const nlohmann::json golden = GoldenJson("smollm2/nll.json");
  const Quality f16 = MeasureAndPrint("f16 cache", model(), golden);
  EXPECT_LE(f16.kl, kMeanKl);

  const auto int8_cache = ModelUnderTest::Load(
      RealModelPath(), FastBackend(), {.kv_type = kernels::KvType::kI8});
  ASSERT_TRUE(int8_cache.ok()) << int8_cache.status();
  const Quality i8 = MeasureAndPrint("i8 cache", *int8_cache->model, golden);
  EXPECT_NE(i8.kl, f16.kl);
  EXPECT_LE(i8.kl, f16.kl + kInt8CacheKl);
}

TEST_F(NllGoldenTest, OneLongPassStaysNearTheReference) {
  const nlohmann::json golden = GoldenJson("smollm2/nll.json");
  const auto ids = golden["ids"].get<std::vector<TokenId>>();
  const int count = golden["long"]["n_tokens"].get<int>();
  const absl::Span<const TokenId> tokens =
      absl::MakeConstSpan(ids).first(count);
  double sum = 0;
  ForEachLogits(model(), tokens, kChunk, 0,
                [&](int position, absl::Span<const float> logits) {
                  if (position + 1 == count) return;
                  sum += LogSumExp(logits) - logits[tokens[position + 1]];
                });
  const double mean = sum / (count - 1);
  const double expected = golden["long"]["mean_nll"].get<double>();
  std::printf("%d tokens: mean NLL %.6f, reference %.6f: %+.3f %%\n", count,
              mean, expected, (mean / expected - 1) * 100);
  EXPECT_NEAR(mean / expected, 1, kNllTolerance);
}

}  // namespace
}  // namespace baton
