#include "common/sampling/gumbel_noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace baton {
namespace {

TEST(GumbelNoiseTest, MatchesTheFormulaOverTheWholeRange) {
  for (const float v : {0x1p-33f, 0x1.8p-33f, 1e-8f, 1e-6f, 1e-3f, 0.1f, 0.5f,
                        0.9f, 0.999f, 1.0f - 0x1p-24f}) {
    const double exact = -std::log(-std::log1p(-static_cast<double>(v)));
    EXPECT_NEAR(GumbelNoise::FromUniform(v), exact,
                2e-6 * std::max(1.0, std::abs(exact)))
        << v;
  }
}

TEST(GumbelNoiseTest, BlocksHoldTheSameUniforms) {
  for (const TokenId first : {0u, 64u, 4u * 1234567u}) {
    const GumbelNoise noise(0x123456789abcdef0, 7, uint64_t{5} << 33);
    float block[GumbelNoise::kBlock];
    noise.BlockUniforms(first, block);
    for (uint32_t i = 0; i < GumbelNoise::kBlock; ++i) {
      ASSERT_EQ(block[i], noise.Uniforms((first + i) / 4)[i % 4]) << i;
    }
  }
}

TEST(GumbelNoiseTest, AUniformIsTheRoundedWord) {
  for (uint64_t word = 0; word <= 0xffffffff; word += 65521) {
    const auto w = static_cast<uint32_t>(word);
    EXPECT_EQ(GumbelNoise::Uniform(w),
              std::min(std::fma(static_cast<float>(w), 0x1p-32f, 0x1p-33f),
                       1.0f - 0x1p-24f));
  }
}

TEST(GumbelNoiseTest, UniformsStayInsideTheOpenInterval) {
  const GumbelNoise noise(1, 2, 3);
  double sum = 0;
  for (uint32_t group = 0; group < 50000; ++group) {
    for (const float v : noise.Uniforms(group)) {
      ASSERT_GT(v, 0);
      ASSERT_LT(v, 1);
      sum += v;
    }
  }
  EXPECT_NEAR(sum / 200000, 0.5, 0.003);
}

TEST(GumbelNoiseTest, MeanAndVarianceAreGumbels) {
  const GumbelNoise noise(7, 0, 11);
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (TokenId token = 0; token < kDraws; ++token) {
    const double g = noise(token);
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772, 0.012);
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.6449, 0.03);
}

TEST(GumbelNoiseTest, DependsOnEveryInput) {
  const float base = GumbelNoise(1, 2, 3)(4);
  EXPECT_EQ(base, GumbelNoise(1, 2, 3)(4));
  EXPECT_NE(base, GumbelNoise(2, 2, 3)(4));
  EXPECT_NE(base, GumbelNoise(1 + (uint64_t{1} << 32), 2, 3)(4));
  EXPECT_NE(base, GumbelNoise(1, 3, 3)(4));
  EXPECT_NE(base, GumbelNoise(1, 2, 4)(4));
  EXPECT_NE(base, GumbelNoise(1, 2, 3 + (uint64_t{1} << 32))(4));
  EXPECT_NE(base, GumbelNoise(1, 2, 3)(5));
}

TEST(GumbelNoiseTest, TheBoundNeverRulesOutWhatExceeds) {
  const GumbelNoise noise(5, 0, 0);
  int ruled_out = 0;
  for (uint32_t group = 0; group < 20000; ++group) {
    for (const float v : noise.Uniforms(group)) {
      const float g = GumbelNoise::FromUniform(v);
      ASSERT_TRUE(GumbelNoise::MayExceed(v, std::nextafter(g, -100.0f))) << v;
      ruled_out += !GumbelNoise::MayExceed(v, g + 1);
    }
  }
  for (float v = 0x1p-33f; v < 1; v = std::nextafter(v * 1.3f, 2.0f)) {
    ASSERT_TRUE(GumbelNoise::MayExceed(
        v, std::nextafter(GumbelNoise::FromUniform(v), -100.0f)));
  }
  EXPECT_GT(ruled_out, 40000);
}

}  // namespace
}  // namespace baton
