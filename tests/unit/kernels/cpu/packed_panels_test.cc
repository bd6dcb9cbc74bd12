#include "kernels/cpu/packed_panels.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/block_formats.h"
#include "kernels/api/half.h"

namespace baton::kernels::cpu {
namespace {

TEST(PackedPanelsTest, TakesItsBitsPerWeight) {
  for (const auto& [type, bits_per_weight] : {std::pair{TensorType::kQ8_0, 8.5},
                                              {TensorType::kQ4_0, 4.5},
                                              {TensorType::kQ4_1, 5.0},
                                              {TensorType::kQ5_0, 5.5},
                                              {TensorType::kQ5_1, 6.0},
                                              {TensorType::kQ4_K, 4.625},
                                              {TensorType::kQ5_K, 5.625},
                                              {TensorType::kQ6_K, 6.5625},
                                              {TensorType::kI8, 8.03125},
                                              {TensorType::kBF16, 16.0},
                                              {TensorType::kF32, 32.0}}) {
    const TensorTypeTraits& traits = TraitsOf(type);
    const std::vector<std::byte> data(64 * RowBytes(type, 1024));
    const PackedPanels panels({type, 64, 1024, data});
    EXPECT_EQ(static_cast<double>(panels.bytes()),
              64 * 1024 * bits_per_weight / 8)
        << traits.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(panels.panel(1)) % 64, 0u);
  }
}

TEST(PackedPanelsTest, PadsTheLastPanelWithZeros) {
  const std::vector<std::byte> data(17 * 4 * 2, std::byte{0x3c});
  const PackedPanels panels({TensorType::kF16, 17, 4, data});
  EXPECT_EQ(panels.panels(), 2);
  for (int k = 0; k < 4; ++k) {
    for (int output = 0; output < 16; ++output) {
      const std::byte byte = panels.panel(1)[(k * 16 + output) * 2];
      EXPECT_EQ(byte, output == 0 ? std::byte{0x3c} : std::byte{0});
    }
  }
}

TEST(PackedPanelsTest, Q4_1LiesAsDocumented) {
  BlockQ4_1 block = {F32ToF16(1.0f), F32ToF16(2.0f), {}};
  block.q[1] = 0x9;   // weight 1: quad 0, byte 1
  block.q[2] = 0x70;  // weight 18: quad 4, byte 2
  std::vector<std::byte> data(16 * sizeof(block));
  std::memcpy(&data[3 * sizeof(block)], &block, sizeof(block));
  const PackedPanels panels({TensorType::kQ4_1, 16, 32, data});
  const auto* panel = reinterpret_cast<const uint8_t*>(panels.panel(0));
  EXPECT_EQ(panel[4 * 3 + 1], 0x09);
  EXPECT_EQ(panel[4 * 3 + 2], 0x70);
  EXPECT_EQ(panel[256 + 2 * 3 + 1], 0x3c);       // d
  EXPECT_EQ(panel[256 + 32 + 2 * 3 + 1], 0x40);  // m
}

}  // namespace
}  // namespace baton::kernels::cpu
