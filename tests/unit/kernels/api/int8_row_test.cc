#include "kernels/api/int8_row.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/half.h"

namespace baton::kernels {
namespace {

struct Int8Row {
  float scale;
  std::vector<int8_t> codes;
};

Int8Row Convert(TensorType type, const void* row, int64_t cols) {
  std::vector<std::byte> out(RowBytes(TensorType::kI8, cols));
  ConvertRowToInt8(type, static_cast<const std::byte*>(row), cols, out.data());
  Int8Row result = {0, std::vector<int8_t>(cols)};
  std::memcpy(&result.scale, out.data(), sizeof(float));
  std::memcpy(result.codes.data(), out.data() + sizeof(float), cols);
  return result;
}

Int8Row Convert(const std::vector<float>& row) {
  return Convert(TensorType::kF32, row.data(),
                 static_cast<int64_t>(row.size()));
}

TEST(Int8RowTest, OnlyFloatTypesConvert) {
  EXPECT_TRUE(ConvertsToInt8(TensorType::kF32));
  EXPECT_TRUE(ConvertsToInt8(TensorType::kF16));
  EXPECT_TRUE(ConvertsToInt8(TensorType::kBF16));
  EXPECT_FALSE(ConvertsToInt8(TensorType::kQ8_0));
  EXPECT_FALSE(ConvertsToInt8(TensorType::kQ6_K));
  EXPECT_FALSE(ConvertsToInt8(TensorType::kI8));
}

TEST(Int8RowTest, TheLargestMagnitudeIs127) {
  std::vector<float> row(64, 0.0f);
  row[3] = -254.0f;
  row[40] = 127.0f;
  row[63] = 2.99f;
  const Int8Row converted = Convert(row);
  EXPECT_EQ(converted.scale, 2.0f);
  EXPECT_EQ(converted.codes[3], -127);
  EXPECT_EQ(converted.codes[40], 64);  // 63.5 rounds to even
  EXPECT_EQ(converted.codes[63], 1);
  EXPECT_EQ(converted.codes[0], 0);
}

TEST(Int8RowTest, CodesAreTheNearestOnes) {
  std::mt19937 random(7);
  for (const float size : {1e-20f, 0.02f, 3.0f, 1e30f}) {
    std::normal_distribution<float> normal(0.0f, size);
    std::vector<float> row(608);  // not a multiple of any chunk
    for (float& w : row) w = normal(random);
    const Int8Row converted = Convert(row);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(converted.codes[i], std::nearbyint(row[i] / converted.scale));
      EXPECT_GE(converted.codes[i], -127);
    }
  }
}

TEST(Int8RowTest, HalfTypesConvertAsTheirWidenedValues) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> halves(320);
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    for (uint16_t& half : halves) {
      half = type == TensorType::kF16 ? F32ToF16(normal(random))
                                      : F32ToBf16(normal(random));
    }
    std::vector<float> widened(halves.size());
    DequantizeRow(type, reinterpret_cast<const std::byte*>(halves.data()), 320,
                  widened.data());
    const Int8Row got = Convert(type, halves.data(), 320);
    const Int8Row expected = Convert(widened);
    EXPECT_EQ(got.scale, expected.scale);
    EXPECT_EQ(got.codes, expected.codes);
  }
}

TEST(Int8RowTest, TinyRowsAreZero) {
  std::vector<float> row(32, std::nextafter(0x1p-100f, 0.0f));
  EXPECT_EQ(Convert(row).scale, 0.0f);
  EXPECT_EQ(Convert(row).codes, std::vector<int8_t>(32, 0));
  row[5] = -0x1p-100f;
  EXPECT_GT(Convert(row).scale, 0.0f);
  EXPECT_EQ(Convert(row).codes[5], -127);
}

TEST(Int8RowTest, NonFiniteRowsHaveNoScale) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> row(32, 1.0f);
    row[31] = bad;
    EXPECT_TRUE(std::isnan(Convert(row).scale));
    EXPECT_EQ(Convert(row).codes, std::vector<int8_t>(32, 0));
  }
}

TEST(Int8RowTest, DequantizesToScaleTimesCode) {
  const std::vector<float> row = {1.0f, -0.5f, 0.25f, 127.0f};
  std::vector<float> padded(32, 0.0f);
  std::copy(row.begin(), row.end(), padded.begin());
  std::vector<std::byte> bytes(RowBytes(TensorType::kI8, 32));
  ConvertRowToInt8(TensorType::kF32,
                   reinterpret_cast<const std::byte*>(padded.data()), 32,
                   bytes.data());
  std::vector<float> out(32);
  DequantizeRow(TensorType::kI8, bytes.data(), 32, out.data());
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 0.0f);  // -0.5 rounds to even
  EXPECT_EQ(out[3], 127.0f);
}

}  // namespace
}  // namespace baton::kernels
