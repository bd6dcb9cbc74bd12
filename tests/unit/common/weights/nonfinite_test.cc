#include "common/weights/nonfinite.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/half.h"

namespace baton {
namespace {

using kernels::TensorType;

struct ScaleCase {
  TensorType type;
  std::vector<int> offsets;  // of half-precision fields in a block
};

class NonfiniteScaleTest : public testing::TestWithParam<ScaleCase> {};

TEST_P(NonfiniteScaleTest, NamesTheFirstWeightOfTheBlock) {
  const auto& traits = kernels::TraitsOf(GetParam().type);
  constexpr int kBlocks = 5;
  constexpr int kBad = 3;
  // All ones outside the scales: quants are never mistaken for scales.
  std::vector<std::byte> data(size_t{kBlocks} * traits.block_bytes,
                              std::byte{0xFF});
  const auto set = [&](int block, int offset, uint16_t half) {
    std::memcpy(data.data() + block * traits.block_bytes + offset, &half, 2);
  };
  for (int block = 0; block < kBlocks; ++block) {
    for (const int offset : GetParam().offsets) {
      set(block, offset, kernels::F32ToF16(65504));
    }
  }
  ASSERT_EQ(FindNonfinite(GetParam().type, data), std::nullopt);
  for (const int offset : GetParam().offsets) {
    for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00, 0x7C01}) {
      set(kBad, offset, bad);
      EXPECT_EQ(FindNonfinite(GetParam().type, data),
                uint64_t{kBad} * traits.block_elements)
          << "offset " << offset << ", bits " << bad;
      set(kBad, offset, kernels::F32ToF16(-65504));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, NonfiniteScaleTest,
                         testing::Values(ScaleCase{TensorType::kF16, {0}},
                                         ScaleCase{TensorType::kQ8_0, {0}},
                                         ScaleCase{TensorType::kQ4_0, {0}},
                                         ScaleCase{TensorType::kQ4_1, {0, 2}},
                                         ScaleCase{TensorType::kQ5_0, {0}},
                                         ScaleCase{TensorType::kQ5_1, {0, 2}},
                                         ScaleCase{TensorType::kQ4_K, {0, 2}},
                                         ScaleCase{TensorType::kQ5_K, {0, 2}},
                                         ScaleCase{TensorType::kQ6_K, {208}}),
                         [](const auto& test) {
                           return std::string(
                               kernels::TraitsOf(test.param.type).name);
                         });

TEST(NonfiniteTest, FindsSingleFloats) {
  std::vector<float> values = {0, -1, std::numeric_limits<float>::max(), 1e-45f,
                               2};
  const auto bytes = [&] {
    return absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(values.data()),
        values.size() * sizeof(float));
  };
  EXPECT_EQ(FindNonfinite(TensorType::kF32, bytes()), std::nullopt);
  values[4] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(FindNonfinite(TensorType::kF32, bytes()), 4u);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FindNonfinite(TensorType::kF32, bytes()), 1u);
}

TEST(NonfiniteTest, FindsSingleBfloats) {
  std::vector<uint16_t> values = {0x0000, 0xBF80, 0x7F7F, 0x7F80};
  const auto bytes = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(values.data()), values.size() * 2);
  EXPECT_EQ(FindNonfinite(TensorType::kBF16, bytes), 3u);
  EXPECT_EQ(FindNonfinite(TensorType::kBF16, bytes.first(6)), std::nullopt);
}

TEST(NonfiniteTest, NothingInNothing) {
  EXPECT_EQ(FindNonfinite(TensorType::kQ4_1, {}), std::nullopt);
}

}  // namespace
}  // namespace baton
