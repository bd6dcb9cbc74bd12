// The bits of the reference, so that they do not change under a revision that
// says they are the same.
#include "kernels/api/numerics_class.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/sha256.h"
#include "kernels/api/half.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/split_mix.h"

namespace baton::kernels {
namespace {

constexpr int kWidth = 256, kHeadDim = 64;

class NumericsClassTest : public ::testing::Test {
 protected:
  // -2 <= values < 2.
  std::vector<float> Floats(size_t n) {
    std::vector<float> values(n);
    for (float& value : values) {
      value =
          static_cast<float>(static_cast<int64_t>(Next() >> 40) - (1 << 23)) /
          static_cast<float>(1 << 22);
    }
    return values;
  }

  // Random codes with scales of 1/64.
  std::vector<std::byte> Matrix(TensorType type, int rows,
                                std::vector<size_t> scales) {
    const TensorTypeTraits& traits = TraitsOf(type);
    std::vector<std::byte> data(rows * RowBytes(type, kWidth));
    for (std::byte& byte : data) byte = static_cast<std::byte>(Next() >> 56);
    const uint16_t scale = F32ToF16(1.0f / 64);
    for (size_t at = 0; at < data.size(); at += traits.block_bytes) {
      for (const size_t offset : scales) {
        std::memcpy(&data[at + offset], &scale, sizeof(scale));
      }
    }
    return data;
  }

  void Digest(const std::vector<float>& values) {
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      hash_.UpdateU32(bits);
    }
  }

  void DigestLinear(TensorType type, const std::vector<std::byte>& data) {
    constexpr int kRows = 32, kInputs = 3;
    const auto weights = backend_->Pack({type, kRows, kWidth, data});
    ASSERT_TRUE(weights.ok()) << weights.status();
    const std::vector<float> x = Floats(kInputs * kWidth);
    std::vector<float> out(kInputs * kRows);
    const LinearTarget target = {.weights = weights->get(), .out = out.data()};
    backend_->Linear(x.data(), kInputs, {&target, 1});
    Digest(out);
  }

  // Long enough for several tiles and two splits.
  void DigestAttention(KvType type) {
    constexpr int kPositions = 700, kHeads = 6, kKvHeads = 2, kRows = 3;
    const KvLayout layout = {1, kKvHeads, kHeadDim, type};
    std::vector<std::byte> storage((kPositions + KvLayout::kTokens - 1) /
                                   KvLayout::kTokens * layout.block_bytes());
    std::vector<std::byte*> blocks;
    for (size_t at = 0; at < storage.size(); at += layout.block_bytes()) {
      blocks.push_back(&storage[at]);
    }
    const std::vector<float> k = Floats(kPositions * kKvHeads * kHeadDim);
    const std::vector<float> v = Floats(kPositions * kKvHeads * kHeadDim);
    const SequenceRows all = {0, kPositions, 0, blocks};
    backend_->StoreKv(layout, 0, k.data(), v.data(), {&all, 1});
    const std::vector<float> q = Floats(kRows * kHeads * kHeadDim);
    std::vector<float> out(q.size());
    const SequenceRows last = {0, kRows, kPositions - kRows, blocks};
    backend_->Attention(layout, 0, q.data(), kHeads, {&last, 1}, out.data());
    Digest(out);
  }

  uint64_t Next() { return SplitMix64(counter_++); }

  uint64_t counter_ = 0;
  Sha256 hash_;
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
};

TEST_F(NumericsClassTest, BitsChangeOnlyWithTheRevision) {
  DigestLinear(TensorType::kQ8_0, Matrix(TensorType::kQ8_0, 32, {0}));
  DigestLinear(TensorType::kQ4_0, Matrix(TensorType::kQ4_0, 32, {0}));
  DigestLinear(TensorType::kQ4_1, Matrix(TensorType::kQ4_1, 32, {0, 2}));
  DigestLinear(TensorType::kQ4_K, Matrix(TensorType::kQ4_K, 32, {0, 2}));
  DigestLinear(TensorType::kQ6_K, Matrix(TensorType::kQ6_K, 32, {208}));
  const std::vector<float> weights = Floats(32 * kWidth);
  std::vector<std::byte> data(weights.size() * sizeof(float));
  std::memcpy(data.data(), weights.data(), data.size());
  DigestLinear(TensorType::kF32, data);

  for (const KvType type : kAllKvTypes) DigestAttention(type);

  const std::vector<float> x = Floats(kWidth), y = Floats(kWidth);
  std::vector<float> out(kWidth);
  backend_->RmsNorm(x.data(), y.data(), 1, kWidth, 1e-5f, out.data());
  Digest(out);
  backend_->SiluMul(x.data(), y.data(), 1, kWidth, out.data());
  Digest(out);
  Digest({backend_->LogSumExp(x.data(), kWidth)});
  const std::vector<float> cos = Floats(kHeadDim), sin = Floats(kHeadDim);
  const int32_t position = 1;
  out = x;
  backend_->RopeInterleaved(out.data(), 1, kWidth / kHeadDim, kHeadDim,
                            kHeadDim, cos.data(), sin.data(), {&position, 1});
  Digest(out);

  const Sha256Digest digest = hash_.Finish();
  EXPECT_EQ(kNumericsRevision, 2u);
  EXPECT_EQ(absl::BytesToHexString(
                {reinterpret_cast<const char*>(digest.data()), digest.size()}),
            "5b29d17eca41091c5f521d03c28bcceed738d50bc511e3ece2a34cc87d5d6148")
      << "the numerics have changed: raise kNumericsRevision, and put the new "
         "digest here";
}

}  // namespace
}  // namespace baton::kernels
