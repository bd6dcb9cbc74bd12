#include "common/sampling/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "common/sampling/gumbel_noise.h"

namespace baton {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomLogits(uint32_t seed, size_t n, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

float LogSumExp(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return static_cast<float>(std::log(sum));
}

TokenId Token(const std::vector<float>& logits, const SamplingParams& params,
              const TokenCounts& counts = {}, DrawContext context = {}) {
  const auto sampled = Sample(logits, params, counts, context, 0);
  EXPECT_TRUE(sampled.ok()) << sampled.status();
  return sampled.ok() ? sampled->token : 0;
}

std::map<TokenId, int> Frequencies(const std::vector<float>& logits,
                                   const SamplingParams& params, int draws) {
  std::map<TokenId, int> frequencies;
  for (int i = 0; i < draws; ++i) {
    DrawContext context;
    context.position = static_cast<uint64_t>(i);
    ++frequencies[Token(logits, params, {}, context)];
  }
  return frequencies;
}

double ChiSquare(const std::map<TokenId, int>& frequencies,
                 const std::vector<double>& probabilities, int draws) {
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double expected = probabilities[i] * draws;
    if (expected == 0) continue;
    const auto it = frequencies.find(static_cast<TokenId>(i));
    const double observed = it == frequencies.end() ? 0 : it->second;
    sum += (observed - expected) * (observed - expected) / expected;
  }
  return sum;
}

std::vector<double> Softmax(const std::vector<float>& logits,
                            double temperature) {
  std::vector<double> p(logits.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    sum += p[i] = std::exp(logits[i] / temperature);
  }
  for (double& x : p) x /= sum;
  return p;
}

TEST(SampleTest, FrequenciesFollowTheSoftmax) {
  // 99.9999 % quantile of chi-square with 39 degrees of freedom.
  constexpr double kLimit = 101;
  const std::vector<float> logits = RandomLogits(1, 40, 1.0f);
  for (const float temperature : {0.5f, 1.0f, 1.7f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 99;
    constexpr int kDraws = 40000;
    EXPECT_LT(ChiSquare(Frequencies(logits, params, kDraws),
                        Softmax(logits, temperature), kDraws),
              kLimit)
        << temperature;
  }
}

TEST(SampleTest, SeedsAndChoicesAreIndependent) {
  const std::vector<float> logits(16, 0.0f);
  const std::vector<double> uniform(256, 1.0 / 256);
  SamplingParams params;
  std::map<TokenId, int> pairs;
  for (uint32_t i = 0; i < 25600; ++i) {
    params.seed = i / 2;
    DrawContext context;
    const TokenId first = Token(logits, params, {}, context);
    context.choice = 1 + i % 2;
    ++pairs[first * 16 + Token(logits, params, {}, context)];
  }
  // Pairs share their first draw, which doubles the variance at most.
  EXPECT_LT(ChiSquare(pairs, uniform, 25600), 2 * 380);
}

TEST(SampleTest, KeptSetsAreExact) {
  const std::vector<float> logits = RandomLogits(2, 30, 1.5f);
  std::vector<TokenId> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  std::sort(order.begin(), order.end(),
            [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  const std::vector<double> p = Softmax(logits, 1);
  const auto expect_kept = [&](const SamplingParams& params, size_t kept) {
    double mass = 0;
    std::vector<double> renormalised(p.size(), 0);
    for (size_t i = 0; i < kept; ++i) mass += p[order[i]];
    for (size_t i = 0; i < kept; ++i) {
      renormalised[order[i]] = p[order[i]] / mass;
    }
    const auto frequencies = Frequencies(logits, params, 20000);
    std::set<TokenId> seen;
    for (const auto& [token, count] : frequencies) seen.insert(token);
    EXPECT_EQ(seen, std::set<TokenId>(order.begin(), order.begin() + kept));
    EXPECT_LT(ChiSquare(frequencies, renormalised, 20000), 75);
  };
  SamplingParams top_k;
  top_k.top_k = 5;
  expect_kept(top_k, 5);

  SamplingParams top_p;
  top_p.top_p = 0.8f;
  double mass = 0;
  size_t kept = 0;
  while (mass < 0.8) mass += p[order[kept++]];
  expect_kept(top_p, kept);

  SamplingParams min_p;
  min_p.min_p = 0.1f;
  kept = 0;
  while (p[order[kept]] >= 0.1 * p[order[0]]) ++kept;
  expect_kept(min_p, kept);

  // top-p is taken of what top-k leaves, min-p of what both leave.
  SamplingParams all = top_k;
  all.top_p = 0.9f;
  all.min_p = 0.3f;
  double top5 = 0;
  for (int i = 0; i < 5; ++i) top5 += p[order[i]];
  mass = 0;
  kept = 0;
  while (mass < 0.9 * top5) mass += p[order[kept++]];
  while (p[order[kept - 1]] < 0.3 * p[order[0]]) --kept;
  expect_kept(all, kept);
}

TEST(SampleTest, TiesAtTheBorderOfTopKGoToTheLowerId) {
  SamplingParams params;
  params.top_k = 3;
  const auto frequencies =
      Frequencies({0.0f, 1.0f, 1.0f, 1.0f, 1.0f}, params, 2000);
  EXPECT_EQ(frequencies.size(), 3u);
  EXPECT_TRUE(frequencies.contains(1) && frequencies.contains(2) &&
              frequencies.contains(3));
}

TEST(SampleTest, GreedyTakesTheFirstMaximum) {
  SamplingParams params;
  params.temperature = 0;
  params.top_k = 1;
  EXPECT_EQ(Token({1.0f, 5.0f, 5.0f, 2.0f}, params), 1u);
  params.seed = 12345;
  EXPECT_EQ(Token({1.0f, 5.0f, 5.0f, 2.0f}, params), 1u);
}

TEST(SampleTest, TinyTemperaturesAreGreedy) {
  SamplingParams params;
  for (const float temperature : {1e-45f, 1e-38f, 1e-6f}) {
    params.temperature = temperature;
    EXPECT_EQ(Token(RandomLogits(3, 100, 5), params),
              Token(RandomLogits(3, 100, 5), [] {
                SamplingParams greedy;
                greedy.temperature = 0;
                return greedy;
              }()));
  }
}

TEST(SampleTest, BiasComesBeforePenalties) {
  SamplingParams params;
  params.temperature = 0;
  params.logit_bias = {{2, 10.0f}};
  EXPECT_EQ(Token({3, 1, 0}, params), 2u);

  TokenCounts counts;
  counts.AddPrompt({2});
  params.repetition_penalty = 5;  // (0 + 10) / 5 = 2 < 3
  EXPECT_EQ(Token({3, 1, 0}, params, counts), 0u);
  params.repetition_penalty = 3;  // (0 + 10) / 3 > 3
  EXPECT_EQ(Token({3, 1, 0}, params, counts), 2u);
}

TEST(SampleTest, RepetitionDividesPositiveAndMultipliesNegativeLogits) {
  SamplingParams params;
  params.temperature = 0;
  params.repetition_penalty = 2;
  TokenCounts counts;
  counts.AddPrompt({0});
  EXPECT_EQ(Token({3.9f, 2.0f}, params, counts), 1u);
  EXPECT_EQ(Token({4.1f, 2.0f}, params, counts), 0u);
  EXPECT_EQ(Token({-1.1f, -2.0f}, params, counts), 1u);
  EXPECT_EQ(Token({-0.9f, -2.0f}, params, counts), 0u);
}

TEST(SampleTest, PresenceAndFrequencyCountOutputOnly) {
  SamplingParams params;
  params.temperature = 0;
  params.presence_penalty = 1;
  TokenCounts counts;
  counts.AddPrompt({0, 0, 0});
  EXPECT_EQ(Token({1.5f, 1.0f}, params, counts), 0u);
  counts.AddOutput(0);
  EXPECT_EQ(Token({1.5f, 1.0f}, params, counts), 1u);

  params.presence_penalty = 0;
  params.frequency_penalty = 0.5f;
  EXPECT_EQ(Token({1.6f, 1.0f}, params, counts), 0u);
  counts.AddOutput(0);
  EXPECT_EQ(Token({1.6f, 1.0f}, params, counts), 1u);
  EXPECT_EQ(counts.OutputCount(0), 2u);
  EXPECT_EQ(counts.OutputCount(7), 0u);
  EXPECT_TRUE(counts.Seen(0));
  EXPECT_FALSE(counts.Seen(7));
}

TEST(SampleTest, ExtremePenaltiesStayFinite) {
  SamplingParams params;
  params.repetition_penalty = 1e-45f;
  TokenCounts counts;
  counts.AddPrompt({0, 1, 2});
  EXPECT_LT(Token({1, -1, 3e38f}, params, counts), 3u);
}

TEST(SampleTest, BannedTokensAreNeverDrawn) {
  const std::vector<float> logits = {5, 4, 3};
  const std::vector<TokenId> banned = {0, 2, 900};
  DrawContext context;
  context.banned = banned;
  for (const float temperature : {0.0f, 1.0f}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SamplingParams params;
      params.temperature = temperature;
      params.seed = seed;
      params.top_p = 0.99f;
      EXPECT_EQ(Token(logits, params, {}, context), 1u);
    }
  }
  const std::vector<TokenId> all = {0, 1, 2};
  context.banned = all;
  EXPECT_EQ(Sample(logits, {}, {}, context, 0).status().code(),
            absl::StatusCode::kInternal);
}

TEST(SampleTest, LogprobsAreOfTheUnmodifiedDistribution) {
  const std::vector<float> logits = RandomLogits(4, 1000, 2);
  const float lse = LogSumExp(logits);
  SamplingParams params;
  params.temperature = 0;
  params.logprobs = true;
  params.top_logprobs = 20;
  params.logit_bias = {{77, 100.0f}};
  const auto sampled = Sample(logits, params, {}, {}, lse);
  ASSERT_TRUE(sampled.ok());
  EXPECT_EQ(sampled->token, 77u);
  EXPECT_EQ(sampled->logprob, logits[77] - lse);
  ASSERT_EQ(sampled->top.size(), 20u);
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sampled->top[i].logprob, sorted[i] - lse);
    EXPECT_EQ(logits[sampled->top[i].token], sorted[i]);
  }
  params.logprobs = false;
  const auto bare = Sample(logits, params, {}, {}, kNan);
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->logprob, 0);
  EXPECT_TRUE(bare->top.empty());
}

TEST(SampleTest, TopLogprobsOfASmallVocabularyAreAllOfIt) {
  SamplingParams params;
  params.logprobs = true;
  params.top_logprobs = 20;
  const auto sampled = Sample({{1, 3, 3}}, params, {}, {}, 0);
  ASSERT_TRUE(sampled.ok());
  ASSERT_EQ(sampled->top.size(), 3u);
  EXPECT_EQ(sampled->top[0].token, 1u);
  EXPECT_EQ(sampled->top[1].token, 2u);
  EXPECT_EQ(sampled->top[2].token, 0u);
}

TEST(SampleTest, NonFiniteLogitsAreInternal) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    std::vector<float> logits(50, 1.0f);
    logits[33] = bad;
    const absl::Status status = Sample(logits, {}, {}, {}, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(std::string(status.message()), "logits: a NaN or infinity");
  }
  EXPECT_EQ(Sample({}, {}, {}, {}, 0).status().code(),
            absl::StatusCode::kInternal);
  SamplingParams params;
  params.logprobs = true;
  EXPECT_EQ(Sample({{1, 2}}, params, {}, {}, kNan).status().code(),
            absl::StatusCode::kInternal);
}

// Tokens are ruled out by a bound on their noise; the winner must still be
// the one that plain Gumbel-max over all tokens finds.
TEST(SampleTest, EqualsGumbelMaxOverAllTokens) {
  const std::vector<float> logits = RandomLogits(5, 4099, 4);
  const float best = *std::max_element(logits.begin(), logits.end());
  for (const float temperature : {0.3f, 1.0f, 2.0f}) {
    for (uint64_t position = 0; position < 100; ++position) {
      SamplingParams params;
      params.temperature = temperature;
      params.seed = 17;
      DrawContext context;
      context.choice = 3;
      context.position = position;
      const GumbelNoise noise(17, 3, position);
      TokenId winner = 0;
      float winning_score = -kInfinity;
      for (TokenId token = 0; token < logits.size(); ++token) {
        const float score = (logits[token] - best) / temperature + noise(token);
        if (score > winning_score) {
          winner = token;
          winning_score = score;
        }
      }
      ASSERT_EQ(Token(logits, params, {}, context), winner) << position;
    }
  }
}

TEST(ValidateTest, DefaultsAndBordersAreValid) {
  SamplingParams params;
  EXPECT_TRUE(Validate(params, 10).ok());
  params.temperature = 2;
  params.top_p = 1e-6f;
  params.min_p = 1;
  params.repetition_penalty = 10;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.top_logprobs = 20;
  params.logit_bias = {{0, -100.0f}, {9, 100.0f}};
  EXPECT_TRUE(Validate(params, 10).ok());
}

TEST(ValidateTest, EveryFieldHasItsMessage) {
  const struct {
    void (*change)(SamplingParams&);
    const char* message;
  } kCases[] = {
      {[](SamplingParams& p) { p.temperature = -1; },
       "sampling.temperature: out of range (got -1, allowed 0..2)"},
      {[](SamplingParams& p) { p.temperature = kNan; },
       "sampling.temperature: out of range (got nan, allowed 0..2)"},
      {[](SamplingParams& p) { p.temperature = kInfinity; },
       "sampling.temperature: out of range (got inf, allowed 0..2)"},
      {[](SamplingParams& p) { p.temperature = 1e30f; },
       "sampling.temperature: out of range (got 1e+30, allowed 0..2)"},
      {[](SamplingParams& p) { p.top_p = 0; },
       "sampling.top_p: out of range (got 0, allowed above 0, up to 1)"},
      {[](SamplingParams& p) { p.top_p = 1.1f; },
       "sampling.top_p: out of range (got 1.1, allowed above 0, up to 1)"},
      {[](SamplingParams& p) { p.top_p = kNan; },
       "sampling.top_p: out of range (got nan, allowed above 0, up to 1)"},
      {[](SamplingParams& p) { p.min_p = -0.5f; },
       "sampling.min_p: out of range (got -0.5, allowed 0..1)"},
      {[](SamplingParams& p) { p.repetition_penalty = 0; },
       "sampling.repetition_penalty: out of range (got 0, allowed above 0, up "
       "to 10)"},
      {[](SamplingParams& p) { p.presence_penalty = 2.5f; },
       "sampling.presence_penalty: out of range (got 2.5, allowed -2..2)"},
      {[](SamplingParams& p) { p.frequency_penalty = kNan; },
       "sampling.frequency_penalty: out of range (got nan, allowed -2..2)"},
      {[](SamplingParams& p) { p.top_logprobs = 21; },
       "sampling.top_logprobs: out of range (got 21, allowed 0..20)"},
      {[](SamplingParams& p) { p.logit_bias = {{10, 1.0f}}; },
       "sampling.logit_bias[0].token: not in the vocabulary (got 10, allowed "
       "0..9)"},
      {[](SamplingParams& p) { p.logit_bias = {{3, 1.0f}, {3, 2.0f}}; },
       "sampling.logit_bias[1].token: not ascending (got 3, allowed each id "
       "once, ascending)"},
      {[](SamplingParams& p) { p.logit_bias = {{3, kInfinity}}; },
       "sampling.logit_bias[0].bias: out of range (got inf, allowed "
       "-100..100)"},
  };
  for (const auto& test : kCases) {
    SamplingParams params;
    test.change(params);
    const absl::Status status = Validate(params, 10);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()), test.message);
  }
}

TEST(ValidateTest, AllErrorsAtOnce) {
  SamplingParams params;
  params.temperature = 3;
  params.min_p = 2;
  EXPECT_EQ(std::string(Validate(params, 10).message()),
            "sampling.temperature: out of range (got 3, allowed 0..2); "
            "sampling.min_p: out of range (got 2, allowed 0..1)");
}

}  // namespace
}  // namespace baton
