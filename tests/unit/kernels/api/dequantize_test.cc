#include "kernels/api/dequantize.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/block_formats.h"
#include "kernels/api/half.h"

namespace baton::kernels {
namespace {

// Values of one block, stored at an odd address as a file may.
template <typename Block>
std::vector<float> Dequantize(TensorType type, const Block& block) {
  std::vector<std::byte> bytes(sizeof(block) + 1);
  std::memcpy(bytes.data() + 1, &block, sizeof(block));
  std::vector<float> out(TraitsOf(type).block_elements);
  DequantizeRow(type, bytes.data() + 1, TraitsOf(type).block_elements,
                out.data());
  return out;
}

TEST(DequantizeTest, Q4_0HasLowNibblesFirst) {
  BlockQ4_0 block = {F32ToF16(0.5f), {}};
  for (int i = 0; i < 16; ++i) block.q[i] = static_cast<uint8_t>(i | 3 << 4);
  const std::vector<float> out = Dequantize(TensorType::kQ4_0, block);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.5f * static_cast<float>(i - 8));
    EXPECT_EQ(out[i + 16], 0.5f * (3 - 8));
  }
}

TEST(DequantizeTest, Q5_1AddsTheFifthBitAndTheMinimum) {
  BlockQ5_1 block = {F32ToF16(2.0f), F32ToF16(-1.0f), {0x05, 0, 0, 0x80}, {}};
  const std::vector<float> out = Dequantize(TensorType::kQ5_1, block);
  for (int i = 0; i < 32; ++i) {
    const bool high = i == 0 || i == 2 || i == 31;
    EXPECT_EQ(out[i], high ? 31.0f : -1.0f) << i;
  }
}

TEST(DequantizeTest, Q5_KUsesBitsByGroup) {
  BlockQ5_K block = {};
  block.d = F32ToF16(1.0f);
  block.dmin = F32ToF16(1.0f);
  for (int g = 0; g < 4; ++g) {
    block.scales[g] = static_cast<uint8_t>(g + 1);
    block.scales[g + 4] = static_cast<uint8_t>(g + 10);
    block.scales[g + 8] = static_cast<uint8_t>((g + 5) | (g + 6) << 4);
  }
  block.high[7] = 1 << 6;  // weight 7 of group 6
  block.q[96 + 7] = 0x21;  // groups 6 and 7
  const std::vector<float> out = Dequantize(TensorType::kQ5_K, block);
  EXPECT_EQ(out[6 * 32 + 7], 7.0f * 17.0f - 8.0f);
  EXPECT_EQ(out[7 * 32 + 7], 8.0f * 2.0f - 9.0f);
  EXPECT_EQ(out[0], -10.0f);
  EXPECT_EQ(out[32], -11.0f);
}

TEST(DequantizeTest, Q8_0HoldsMinus128) {
  BlockQ8_0 block = {F32ToF16(1.0f), {-128, 127}};
  const std::vector<float> out = Dequantize(TensorType::kQ8_0, block);
  EXPECT_EQ(out[0], -128.0f);
  EXPECT_EQ(out[1], 127.0f);
}

TEST(DequantizeTest, WidensFloats) {
  const uint16_t stored[] = {0x3fc0, 0xc000};
  float out[2];
  const auto* bytes = reinterpret_cast<const std::byte*>(stored);
  DequantizeRow(TensorType::kBF16, bytes, 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.0f);
  DequantizeRow(TensorType::kF16, bytes, 2, out);
  EXPECT_EQ(out[0], 1.9375f);
  EXPECT_EQ(out[1], -2.0f);
}

}  // namespace
}  // namespace baton::kernels
