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

TEST_F(NllGoldenTest, MeanNllAndKlAreNearTheReference) {
  const nlohmann::json golden = GoldenJson("smollm2/nll.json");
  const auto ids = golden["ids"].get<std::vector<TokenId>>();
  const int window = golden["window"].get<int>();
  const nlohmann::json& kl = golden["kl"];
  const int kl_window = kl["window"].get<int>();
  const int kl_first = kl["positions"][0]["row"].get<int>();

  double nll_sum = 0;
  int scored = 0;
  double kl_sum = 0;
  double kl_largest = 0;
  const int kl_count = static_cast<int>(kl["positions"].size());
  const int windows = static_cast<int>(golden["nll"].size());
  for (int w = 0; w < windows; ++w) {
    const absl::Span<const TokenId> tokens =
        absl::MakeConstSpan(ids).subspan(w * window, window);
    ForEachLogits(
        model(), tokens, kChunk, 0,
        [&](int position, absl::Span<const float> logits) {
          if (position + 1 < window) {
            nll_sum += LogSumExp(logits) - logits[tokens[position + 1]];
            ++scored;
          }
          const int k = position - kl_first;
          if (w != kl_window || k < 0 || k >= kl_count) return;
          ASSERT_EQ(kl["positions"][k]["row"].get<int>(), position);
          const double divergence = KlDivergence(kl["positions"][k], logits);
          kl_sum += divergence;
          kl_largest = std::max(kl_largest, divergence);
        });
  }
  const double mean = nll_sum / scored;
  const double expected = golden["mean_nll"].get<double>();
  std::printf("mean NLL %.6f, reference %.6f: %+.3f %%\n", mean, expected,
              (mean / expected - 1) * 100);
  std::printf("KL per position: mean %.5f, largest %.5f nat\n",
              kl_sum / kl_count, kl_largest);
  EXPECT_EQ(scored, 4088);
  EXPECT_NEAR(mean / expected, 1, kNllTolerance);
  EXPECT_EQ(kl_count, 64);
  EXPECT_GT(kl_sum, 0);
  EXPECT_LE(kl_sum / kl_count, kMeanKl);
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
