#include "kernels/api/exact_math.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/api/exact_math_double.h"

namespace baton::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double UlpError(float actual, double expected) {
  const float rounded = std::fabs(static_cast<float>(expected));
  const double ulp =
      std::nextafter(rounded, kInfinity) - static_cast<double>(rounded);
  return std::fabs(actual - expected) / ulp;
}

double UlpErrorDouble(double actual, long double expected) {
  const double rounded = std::fabs(static_cast<double>(expected));
  const long double ulp =
      std::nextafter(rounded, HUGE_VAL) - static_cast<long double>(rounded);
  return static_cast<double>(std::fabs(actual - expected) / ulp);
}

// Walks the floats of [low, high], negative then positive, by bit pattern.
template <typename Check>
void ForFloats(float low, float high, uint32_t step, Check check) {
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += step) {
    const float x = std::bit_cast<float>(bits);
    if (x <= high && x >= low) check(x);
    if (-x <= high && -x >= low) check(-x);
  }
}

TEST(ExactMathTest, ExpIsWithinItsBound) {
  double worst = 0;
  ForFloats(-87.3f, 88.72f, 997, [&](float x) {
    worst = std::max(worst, UlpError(Exp(x), std::exp(double{x})));
  });
  EXPECT_LT(worst, 1.1);
}

TEST(ExactMathTest, ExpRoundsIntoDenormals) {
  double worst = 0;
  ForFloats(-103.9f, -87.3f, 97, [&](float x) {
    worst = std::max(worst, UlpError(Exp(x), std::exp(double{x})));
  });
  EXPECT_LT(worst, 1.1);
}

TEST(ExactMathTest, ExpAtTheEdges) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-104.0f), 0.0f);
  EXPECT_GT(Exp(-103.0f), 0.0f);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(89.0f), kInfinity);
  EXPECT_LT(Exp(88.7f), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(kNan)));
}

TEST(ExactMathTest, Exp2IsWithinItsBound) {
  double worst = 0;
  ForFloats(-125.9f, 127.9f, 997, [&](float x) {
    worst = std::max(worst, UlpError(Exp2(x), std::exp2(double{x})));
  });
  EXPECT_LT(worst, 0.8);
  ForFloats(-149.9f, -125.9f, 97, [&](float x) {
    worst = std::max(worst, UlpError(Exp2(x), std::exp2(double{x})));
  });
  EXPECT_LT(worst, 1.1);
}

TEST(ExactMathTest, Exp2AtTheEdges) {
  EXPECT_EQ(Exp2(0.0f), 1.0f);
  EXPECT_EQ(Exp2(-0.0f), 1.0f);
  EXPECT_EQ(Exp2(-1.0f), 0.5f);
  EXPECT_EQ(Exp2(10.0f), 1024.0f);
  EXPECT_EQ(Exp2(-149.0f), 0x1p-149f);
  EXPECT_EQ(Exp2(-150.0f), 0.0f);
  EXPECT_EQ(Exp2(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(Exp2(kNan)));
}

TEST(ExactMathTest, LogIsWithinItsBound) {
  double worst = 0;
  ForFloats(0x1p-149f, 0x1.fffffep127f, 997, [&](float x) {
    if (x > 0) worst = std::max(worst, UlpError(Log(x), std::log(double{x})));
  });
  ForFloats(0.5f, 2.0f, 17, [&](float x) {
    worst = std::max(worst, UlpError(Log(x), std::log(double{x})));
  });
  EXPECT_LT(worst, 1.0);
}

TEST(ExactMathTest, LogAtTheEdges) {
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_EQ(Log(0.0f), -kInfinity);
  EXPECT_EQ(Log(-0.0f), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(-kInfinity)));
  EXPECT_TRUE(std::isnan(Log(kNan)));
}

TEST(ExactMathTest, SiluIsWithinItsBound) {
  double worst = 0;
  ForFloats(-80.0f, 100.0f, 997, [&](float x) {
    const double expected = x / (1.0 + std::exp(-double{x}));
    if (std::fabs(expected) < 0x1p-126) return;
    worst = std::max(worst, UlpError(Silu(x), expected));
  });
  EXPECT_LT(worst, 2.5);
}

TEST(ExactMathTest, SiluAtTheEdges) {
  EXPECT_EQ(Silu(0.0f), 0.0f);
  EXPECT_EQ(Silu(-1000.0f), 0.0f);
  EXPECT_EQ(Silu(1000.0f), 1000.0f);
  EXPECT_TRUE(std::isnan(Silu(kNan)));
}

TEST(ExactMathDoubleTest, SinAndCosAreWithinTheirBound) {
  double worst_sin = 0, worst_cos = 0;
  for (double x = 1e-8; x < 0x1p30; x *= 1.00013) {
    for (const double signed_x : {x, -x}) {
      const long double wide = signed_x;
      worst_sin =
          std::max(worst_sin, UlpErrorDouble(Sin(signed_x), std::sin(wide)));
      worst_cos =
          std::max(worst_cos, UlpErrorDouble(Cos(signed_x), std::cos(wide)));
    }
  }
  EXPECT_LT(worst_sin, 1.6);
  EXPECT_LT(worst_cos, 1.6);
}

TEST(ExactMathDoubleTest, RoundsSinAndCosOfFloats) {
  for (float x = 0.0f; x < 10000.0f; x += 0.37f) {
    EXPECT_EQ(Sin(x), static_cast<float>(std::sin(double{x})));
    EXPECT_EQ(Cos(x), static_cast<float>(std::cos(double{x})));
  }
}

TEST(ExactMathDoubleTest, ExpLogAndPowAreWithinTheirBounds) {
  double worst_exp = 0, worst_log = 0, worst_pow = 0;
  for (double x = -700; x < 700; x += 0.0173) {
    const long double wide = x;
    worst_exp = std::max(worst_exp, UlpErrorDouble(Exp(x), std::exp(wide)));
    const double y = Exp(x);
    worst_log =
        std::max(worst_log, UlpErrorDouble(Log(y), std::log((long double){y})));
  }
  for (const double base : {10000.0, 100000.0, 1e6}) {
    for (int i = 0; i < 128; ++i) {
      const double y = -2.0 * i / 256;
      const double bound = 1 + 2 * std::fabs(y * std::log(base));
      const long double expected =
          std::pow(static_cast<long double>(base), static_cast<long double>(y));
      worst_pow =
          std::max(worst_pow, UlpErrorDouble(Pow(base, y), expected) / bound);
    }
  }
  EXPECT_LT(worst_exp, 1.0);
  EXPECT_LT(worst_log, 1.0);
  EXPECT_LT(worst_pow, 1.0);
}

TEST(ExactMathDoubleTest, NanStaysNan) {
  EXPECT_TRUE(std::isnan(Exp(double{kNan})));
  EXPECT_TRUE(std::isnan(Sin(double{kNan})));
  EXPECT_TRUE(std::isnan(Cos(double{kInfinity})));
}

}  // namespace
}  // namespace baton::kernels
