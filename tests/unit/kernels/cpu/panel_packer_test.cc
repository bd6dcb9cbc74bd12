#include "kernels/cpu/panel_packer.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/block_formats.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/half.h"
#include "kernels/api/int8_row.h"
#include "kernels/cpu/weight_arena.h"

namespace baton::kernels::cpu {
namespace {

std::unique_ptr<PackedPanels> EmptyPanels(const MatrixShape& shape) {
  WeightArena arena;
  auto memory = arena.Allocate(PackedPanels::StorageBytes(shape));
  EXPECT_TRUE(memory.ok()) << memory.status();
  return std::make_unique<PackedPanels>(shape, *std::move(memory));
}

// `data` in pieces of `step` rows.
std::unique_ptr<PackedPanels> PackInSteps(const MatrixShape& shape,
                                          absl::Span<const std::byte> data,
                                          int64_t step, int threads = 1) {
  ThreadPool pool(threads);
  PanelPacker packer(shape, EmptyPanels(shape), &pool);
  const size_t piece = step * RowBytes(shape.type, shape.cols);
  for (size_t at = 0; at < data.size(); at += piece) {
    packer.Append(data.subspan(at, piece));
  }
  auto matrix = packer.Finish();
  return std::unique_ptr<PackedPanels>(
      static_cast<PackedPanels*>(matrix.release()));
}

PackedPanels Pack(TensorType type, int64_t rows, int64_t cols,
                  absl::Span<const std::byte> data) {
  return *PackInSteps({type, rows, cols}, data, rows);
}

std::vector<std::byte> RandomRows(TensorType type, int64_t rows, int64_t cols) {
  std::mt19937 random(11);
  std::vector<std::byte> data(rows * RowBytes(type, cols));
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

std::vector<std::byte> Bytes(const PackedPanels& panels) {
  return {panels.panel(0), panels.panel(panels.panels())};
}

TEST(PanelPackerTest, TakesItsBitsPerWeight) {
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
    const PackedPanels panels = Pack(type, 64, 1024, data);
    EXPECT_EQ(static_cast<double>(panels.bytes()),
              64 * 1024 * bits_per_weight / 8)
        << traits.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(panels.panel(1)) % 64, 0u);
  }
}

TEST(PanelPackerTest, PadsTheLastPanelWithZeros) {
  const std::vector<std::byte> data(17 * 4 * 2, std::byte{0x3c});
  const PackedPanels panels = Pack(TensorType::kF16, 17, 4, data);
  EXPECT_EQ(panels.panels(), 2);
  for (int k = 0; k < 4; ++k) {
    for (int output = 0; output < 16; ++output) {
      const std::byte byte = panels.panel(1)[(k * 16 + output) * 2];
      EXPECT_EQ(byte, output == 0 ? std::byte{0x3c} : std::byte{0});
    }
  }
}

TEST(PanelPackerTest, Q4_1LiesAsDocumented) {
  BlockQ4_1 block = {F32ToF16(1.0f), F32ToF16(2.0f), {}};
  block.q[1] = 0x9;   // weight 1: quad 0, byte 1
  block.q[2] = 0x70;  // weight 18: quad 4, byte 2
  std::vector<std::byte> data(16 * sizeof(block));
  std::memcpy(&data[3 * sizeof(block)], &block, sizeof(block));
  const PackedPanels panels = Pack(TensorType::kQ4_1, 16, 32, data);
  const auto* panel = reinterpret_cast<const uint8_t*>(panels.panel(0));
  EXPECT_EQ(panel[4 * 3 + 1], 0x09);
  EXPECT_EQ(panel[4 * 3 + 2], 0x70);
  EXPECT_EQ(panel[256 + 2 * 3 + 1], 0x3c);       // d
  EXPECT_EQ(panel[256 + 32 + 2 * 3 + 1], 0x40);  // m
}

TEST(PanelPackerTest, DequantizesWhatTheFileHolds) {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
        TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
        TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
        TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kI8}) {
    const int64_t rows = 37, cols = 512;
    const std::vector<std::byte> data = RandomRows(type, rows, cols);
    const PackedPanels panels = Pack(type, rows, cols, data);
    std::vector<float> expected(cols), actual(cols);
    for (int64_t r = 0; r < rows; ++r) {
      DequantizeRow(type, &data[r * RowBytes(type, cols)], cols,
                    expected.data());
      panels.Dequantize(r, actual.data());
      for (int64_t k = 0; k < cols; ++k) {
        ASSERT_TRUE(expected[k] == actual[k] ||
                    (std::isnan(expected[k]) && std::isnan(actual[k])))
            << TraitsOf(type).name << " row " << r << ", column " << k;
      }
    }
  }
}

TEST(PanelPackerTest, PiecesAndThreadsMakeTheSamePanels) {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kQ4_0, TensorType::kQ6_K}) {
    const int64_t rows = 200, cols = 256;
    const std::vector<std::byte> data = RandomRows(type, rows, cols);
    const MatrixShape shape = {type, rows, cols};
    const std::vector<std::byte> whole = Bytes(*PackInSteps(shape, data, rows));
    EXPECT_EQ(whole, Bytes(*PackInSteps(shape, data, MatrixPacker::kRowStep)));
    EXPECT_EQ(whole,
              Bytes(*PackInSteps(shape, data, 2 * MatrixPacker::kRowStep, 3)));
  }
}

TEST(PanelPackerTest, AsInt8PacksTheConvertedRows) {
  const int64_t rows = 50, cols = 288;
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const std::vector<std::byte> data = RandomRows(type, rows, cols);
    const int64_t row_bytes = RowBytes(TensorType::kI8, cols);
    std::vector<std::byte> converted(rows * row_bytes);
    for (int64_t r = 0; r < rows; ++r) {
      ConvertRowToInt8(type, &data[r * RowBytes(type, cols)], cols,
                       &converted[r * row_bytes]);
    }
    const auto panels =
        PackInSteps({type, rows, cols, /*as_int8=*/true}, data, 64, 2);
    EXPECT_EQ(panels->type(), TensorType::kI8);
    EXPECT_EQ(Bytes(*panels),
              Bytes(Pack(TensorType::kI8, rows, cols, converted)));
  }
}

}  // namespace
}  // namespace baton::kernels::cpu
