#include "common/model/rope.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace baton {
namespace {

ModelConfig Config() {
  ModelConfig config;
  config.rotary_dims = 64;
  config.rope_base = 100000.0;
  return config;
}

TEST(RopeTest, AnglesAreTheFormulasWithinAnUlp) {
  const Rope rope(Config(), {});
  ASSERT_EQ(rope.pairs(), 32);
  const std::vector<int32_t> positions = {0, 1, 2, 63, 64, 1500, 8191, 131071};
  std::vector<float> cos(positions.size() * 32);
  std::vector<float> sin(positions.size() * 32);
  rope.Angles(positions, cos.data(), sin.data());
  for (size_t p = 0; p < positions.size(); ++p) {
    for (int i = 0; i < 32; ++i) {
      const double angle = positions[p] * std::pow(100000.0, -2.0 * i / 64);
      EXPECT_NEAR(cos[p * 32 + i], std::cos(angle), 6e-8);
      EXPECT_NEAR(sin[p * 32 + i], std::sin(angle), 6e-8);
    }
  }
}

TEST(RopeTest, PositionZeroRotatesByNothing) {
  const Rope rope(Config(), {});
  std::vector<float> cos(32);
  std::vector<float> sin(32);
  rope.Angles({0}, cos.data(), sin.data());
  EXPECT_EQ(cos, std::vector<float>(32, 1));
  EXPECT_EQ(sin, std::vector<float>(32, 0));
}

TEST(RopeTest, FactorsDivideTheFrequencies) {
  std::vector<float> factors(32, 1);
  factors[0] = 8;
  const Rope scaled(Config(), factors);
  std::vector<float> cos(32);
  std::vector<float> sin(32);
  scaled.Angles({16}, cos.data(), sin.data());
  EXPECT_NEAR(cos[0], std::cos(2.0), 6e-8);
  EXPECT_NEAR(sin[0], std::sin(2.0), 6e-8);

  std::vector<float> plain_cos(32);
  std::vector<float> plain_sin(32);
  Rope(Config(), {}).Angles({16}, plain_cos.data(), plain_sin.data());
  EXPECT_EQ(cos[1], plain_cos[1]);
  EXPECT_NE(cos[0], plain_cos[0]);
}

TEST(RopeTest, RowsFollowTheOrderOfPositions) {
  const Rope rope(Config(), {});
  std::vector<float> cos(64);
  std::vector<float> sin(64);
  rope.Angles({7, 3}, cos.data(), sin.data());
  std::vector<float> single_cos(32);
  std::vector<float> single_sin(32);
  rope.Angles({3}, single_cos.data(), single_sin.data());
  EXPECT_EQ(std::vector<float>(cos.begin() + 32, cos.end()), single_cos);
  EXPECT_EQ(std::vector<float>(sin.begin() + 32, sin.end()), single_sin);
}

}  // namespace
}  // namespace baton
