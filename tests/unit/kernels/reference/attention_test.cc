#include "kernels/reference/attention.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::reference {
namespace {

// One head of one layer with `positions` random tokens.
class AttentionTest : public testing::TestWithParam<int> {
 protected:
  static constexpr int kHeadDim = 24;

  AttentionTest()
      : layout_{1, 1, kHeadDim, KvType::kF32},
        blocks_(GetParam() / KvLayout::kTokens + 1,
                std::vector<std::byte>(layout_.block_bytes())) {
    for (auto& block : blocks_) pointers_.push_back(block.data());
    for (int position = 0; position < GetParam(); ++position) {
      k_.push_back(Random());
      v_.push_back(Random());
      StoreHead(Cache(), position, k_.back().data(), v_.back().data());
    }
  }

  HeadCache Cache() const { return {&layout_, 0, 0, pointers_}; }

  std::vector<float> Random() {
    std::vector<float> values(kHeadDim);
    for (float& value : values) {
      value = std::normal_distribution<float>(0.0f, 2.0f)(random_);
    }
    return values;
  }

  std::mt19937 random_{3};
  KvLayout layout_;
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<std::byte*> pointers_;
  std::vector<std::vector<float>> k_, v_;
};

TEST_P(AttentionTest, IsSoftmaxAttention) {
  const int position = GetParam() - 1;
  const std::vector<float> q = Random();
  std::vector<double> expected(kHeadDim);
  double weight = 0, maximum = -1e30;
  std::vector<double> scores;
  for (int j = 0; j <= position; ++j) {
    double score = 0;
    for (int d = 0; d < kHeadDim; ++d) score += double{q[d]} * k_[j][d];
    scores.push_back(score / std::sqrt(double{kHeadDim}));
    maximum = std::max(maximum, scores.back());
  }
  for (int j = 0; j <= position; ++j) {
    const double p = std::exp(scores[j] - maximum);
    weight += p;
    for (int d = 0; d < kHeadDim; ++d) expected[d] += p * v_[j][d];
  }
  std::vector<float> out(kHeadDim);
  AttendHead(Cache(), position, q.data(), out.data());
  for (int d = 0; d < kHeadDim; ++d) {
    EXPECT_NEAR(out[d], expected[d] / weight, 1e-5);
  }
}

TEST_P(AttentionTest, IsCausal) {
  const std::vector<float> q = Random();
  std::vector<float> before(kHeadDim), after(kHeadDim);
  const int position = GetParam() / 2;
  AttendHead(Cache(), position, q.data(), before.data());
  const std::vector<float> nan(kHeadDim, NAN);
  for (int j = position + 1; j < GetParam(); ++j) {
    StoreHead(Cache(), j, nan.data(), nan.data());
  }
  AttendHead(Cache(), position, q.data(), after.data());
  EXPECT_EQ(before, after);
}

INSTANTIATE_TEST_SUITE_P(Contexts, AttentionTest,
                         testing::Values(1, 2, 16, 17, 64, 65, 512, 513, 1300));

}  // namespace
}  // namespace baton::kernels::reference
