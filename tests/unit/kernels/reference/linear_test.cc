#include "kernels/reference/linear.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "kernels/api/block_formats.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/half.h"

namespace baton::kernels::reference {
namespace {

TEST(QuantizeRowTest, ScalesByTheLargestMagnitude) {
  std::vector<float> x(64, 0.0f);
  x[0] = -2.54f;
  x[1] = 1.27f;
  x[2] = 0.01f;  // exactly half a step at most
  x[32 + 5] = 127.0f;
  x[32 + 6] = 0.5f;  // a tie, to even
  x[32 + 7] = 1.5f;
  const QuantizedRow row = QuantizeRow(x.data(), 64);
  EXPECT_EQ(row.scale[0], 2.54f / 127.0f);
  EXPECT_EQ(row.q[0], -127);
  EXPECT_EQ(row.q[1], 64);
  EXPECT_EQ(row.scale[1], 1.0f);
  EXPECT_EQ(row.q[32 + 5], 127);
  EXPECT_EQ(row.q[32 + 6], 0);
  EXPECT_EQ(row.q[32 + 7], 2);
}

TEST(QuantizeRowTest, TinyGroupsAreZero) {
  std::vector<float> x(64, std::nextafter(kTinyMaximum, 0.0f));
  x[40] = kTinyMaximum;
  const QuantizedRow row = QuantizeRow(x.data(), 64);
  EXPECT_EQ(row.scale[0], 0.0f);
  EXPECT_EQ(row.q[0], 0);
  EXPECT_EQ(row.q[40], 127);
  EXPECT_GT(row.scale[1], 0.0f);
}

TEST(QuantizeRowTest, NonFiniteGroupsPoisonTheirRowOnly) {
  std::vector<float> x(64, 1.0f);
  x[3] = std::numeric_limits<float>::infinity();
  const QuantizedRow row = QuantizeRow(x.data(), 64);
  EXPECT_TRUE(std::isnan(row.scale[0]));
  EXPECT_EQ(row.q[0], 0);
  EXPECT_EQ(row.scale[1], 1.0f / 127.0f);
}

// The dot product of dequantised weights and activations in double precision.
double ExactDot(TensorType type, const std::vector<std::byte>& w,
                const QuantizedRow& x, int cols) {
  std::vector<float> widened(cols);
  DequantizeRow(type, w.data(), cols, widened.data());
  double dot = 0;
  for (int k = 0; k < cols; ++k) {
    dot += double{widened[k]} * x.q[k] * x.scale[k / 32];
  }
  return dot;
}

TEST(QuantizedDotTest, ApproximatesTheDequantisedProduct) {
  std::mt19937 random(7);
  constexpr int kCols = 512;
  for (const TensorType type :
       {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
        TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
        TensorType::kQ5_K, TensorType::kQ6_K}) {
    const TensorTypeTraits& traits = TraitsOf(type);
    std::vector<std::byte> w(kCols / traits.block_elements *
                             traits.block_bytes);
    for (std::byte& byte : w) byte = static_cast<std::byte>(random() & 0x3f);
    std::vector<float> x(kCols);
    for (float& value : x) value = std::normal_distribution<float>()(random);
    const QuantizedRow row = QuantizeRow(x.data(), kCols);
    const double exact = ExactDot(type, w, row, kCols);
    const double actual = QuantizedDot(type, w.data(), row, kCols);
    EXPECT_NEAR(actual, exact, 1e-4 * (1 + std::fabs(exact))) << traits.name;
    EXPECT_NE(exact, 0.0);
  }
}

TEST(FloatDotTest, IsOneChainInOrder) {
  // (1 + 2^-24) rounds to 1 unless the small terms were added first.
  const std::vector<float> w = {1.0f, 0x1p-24f, 0x1p-24f};
  const std::vector<float> x = {1.0f, 1.0f, 1.0f};
  EXPECT_EQ(FloatDot(w.data(), x.data(), 3), 1.0f);
  const std::vector<float> reversed = {0x1p-24f, 0x1p-24f, 1.0f};
  EXPECT_EQ(FloatDot(reversed.data(), x.data(), 3), 1.0f + 0x1p-23f);
}

}  // namespace
}  // namespace baton::kernels::reference
