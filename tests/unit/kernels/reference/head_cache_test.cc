#include "kernels/reference/head_cache.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Blocks of one head, filled with 0xff.
struct OneHead {
  OneHead(KvType type, int head_dim, int blocks)
      : layout{.layers = 1, .kv_heads = 1, .head_dim = head_dim, .type = type},
        storage(blocks,
                std::vector<std::byte>(layout.block_bytes(), std::byte{0xff})) {
    for (auto& block : storage) pointers.push_back(block.data());
  }
  HeadCache cache() const { return {&layout, 0, 0, pointers}; }

  KvLayout layout;
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::byte*> pointers;
};

TEST(HeadCacheTest, Int8RoundsToAScalePerTokenAndHead) {
  const OneHead head(KvType::kI8, 6, 2);
  // Transformed in pairs: 127, -127; 1.4, 1.6; 0, 2.5.
  const std::vector<float> k = {0.0f, 127.0f, 1.5f, -0.1f, 1.25f, -1.25f};
  const std::vector<float> v = {-0.5f, 0.25f, 0.125f, 0.0f, -0.0625f, 0.5f};
  StoreHead(head.cache(), 18, k.data(), v.data());
  EXPECT_EQ(head.cache().k_scale(18), 1.0f);
  const int codes[] = {127, -127, 1, 2, 0, 2};
  for (int d = 0; d < 6; ++d) EXPECT_EQ(head.cache().k_code(18, d), codes[d]);
  EXPECT_EQ(head.cache().v_scale(18), 0.5f / 127.0f);
  for (int d = 0; d < 6; ++d) {
    EXPECT_EQ(head.cache().v_code(18, d), std::rint(v[d] * 254.0f));
  }
}

TEST(HadamardTest, KeepsProductsAndSpreadsOutliers) {
  for (const int head_dim : {2, 6, 20, 64, 80, 128}) {
    const auto block = static_cast<float>(HadamardBlock(head_dim));
    std::vector<float> a(head_dim), b(head_dim);
    for (int d = 0; d < head_dim; ++d) {
      a[d] = std::sin(static_cast<float>(d));
      b[d] = std::cos(static_cast<float>(3 * d));
    }
    float before = 0, after = 0;
    for (int d = 0; d < head_dim; ++d) before += a[d] * b[d];
    Hadamard(head_dim, a.data());
    Hadamard(head_dim, b.data());
    for (int d = 0; d < head_dim; ++d) after += a[d] * b[d];
    EXPECT_NEAR(before, after / block, 1e-5 * head_dim);
  }
  std::vector<float> outlier(64, 0.0f);
  outlier[5] = 3.0f;
  Hadamard(64, outlier.data());
  for (const float x : outlier) EXPECT_EQ(std::fabs(x), 3.0f);
}

TEST(HeadCacheTest, OtherPositionsStayAsTheyAre) {
  for (const KvType type : kAllKvTypes) {
    const OneHead head(type, 8, 1);
    const std::vector<float> x(8, 1.0f);
    StoreHead(head.cache(), 5, x.data(), x.data());
    size_t written = 0;
    for (const std::byte b : head.storage[0]) written += b != std::byte{0xff};
    EXPECT_LE(written, 2 * 8 * KvElementBytes(type) + 2 * KvScaleBytes(type));
    EXPECT_GT(written, 0u);
  }
}

TEST(HeadCacheTest, LayoutsHoldWhatTheySay) {
  const KvLayout i8 = {3, 2, 64, KvType::kI8};
  EXPECT_EQ(i8.head_bytes(), 16u * (64 + 4));
  EXPECT_EQ(i8.block_bytes(), 2u * 3 * 2 * 16 * (64 + 4));
  EXPECT_EQ((KvLayout{1, 1, 6, KvType::kI8}.code_bytes()), 16u * 8);
  EXPECT_EQ((KvLayout{3, 2, 64, KvType::kF16}.block_bytes()),
            2u * 3 * 2 * 16 * 128);
  for (const KvType type : kAllKvTypes) {
    EXPECT_EQ(KvTypeNamed(KvTypeName(type)), type);
  }
  EXPECT_EQ(KvTypeNamed("int8"), std::nullopt);
}

TEST(QuantizeHeadTest, DegenerateHeadsAreZeroOrPoisoned) {
  const float tiny[] = {0x1p-101f, 0.0f, -0x1p-102f};
  EXPECT_EQ(QuantizeHead(tiny, 3).scale, 0.0f);
  EXPECT_EQ(QuantizeHead(tiny, 3).q, std::vector<int8_t>(3, 0));
  for (const float bad : {NAN, kInfinity, -kInfinity}) {
    const float x[] = {1.0f, bad, 2.0f};
    EXPECT_TRUE(std::isnan(QuantizeHead(x, 3).scale));
    EXPECT_EQ(QuantizeHead(x, 3).q, std::vector<int8_t>(3, 0));
  }
}

TEST(QuantizeWeightsTest, TheLargestIs255) {
  const float weights[] = {0.5f, 0.25f, 0.0f, 0.5f / 255, 0.0009f};
  const QuantizedWeights u = QuantizeWeights(weights, 5);
  EXPECT_EQ(u.scale, 0.5f / 255.0f);
  const int codes[] = {255, 128, 0, 1, 0};
  for (int j = 0; j < 5; ++j) EXPECT_EQ(u.codes[j], codes[j]) << j;
  const float none[] = {0.0f, 0.0f};
  EXPECT_EQ(QuantizeWeights(none, 2).scale, 0.0f);
  const float bad[] = {0.0f, NAN};
  EXPECT_TRUE(std::isnan(QuantizeWeights(bad, 2).scale));
}

}  // namespace
}  // namespace baton::kernels::reference
