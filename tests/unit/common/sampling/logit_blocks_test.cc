#include "common/sampling/logit_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace baton {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(LogitBlocksTest, FiniteSeesEveryPosition) {
  for (const size_t n : {1, 15, 63, 64, 65, 200}) {
    for (const float bad :
         {std::nanf(""), -std::nanf(""), kInfinity, -kInfinity}) {
      for (size_t i = 0; i < n; ++i) {
        std::vector<float> logits(n, -3e38f);
        ASSERT_TRUE(LogitBlocks(logits).finite());
        logits[i] = bad;
        ASSERT_FALSE(LogitBlocks(logits).finite()) << n << " " << i;
      }
    }
  }
}

TEST(LogitBlocksTest, BestPrefersTheLowerId) {
  for (const size_t n : {1, 16, 64, 65, 130}) {
    for (size_t i = 0; i < n; ++i) {
      std::vector<float> logits(n, -1);
      for (size_t j = i; j < n; ++j) logits[j] = 2;
      EXPECT_EQ(LogitBlocks(logits).best(),
                (Candidate{2, static_cast<TokenId>(i)}));
    }
  }
  EXPECT_EQ(LogitBlocks(std::vector<float>{-0.0f, 0.0f}).best().token, 0u);
}

TEST(LogitBlocksTest, BestPassesOverWhatIsBanned) {
  std::vector<float> logits(130, -kInfinity);
  EXPECT_EQ(LogitBlocks(logits).best().logit, -kInfinity);
  logits[100] = -5;
  EXPECT_EQ(LogitBlocks(logits).best(), (Candidate{-5, 100}));
}

TEST(LogitBlocksTest, MaximaAndVisitsAreByBlock) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> logits(64 * 5 + 7);
  for (float& logit : logits) logit = normal(random);
  const LogitBlocks blocks(logits);
  ASSERT_EQ(blocks.maxima().size(), 6u);
  std::vector<TokenId> expected, visited;
  for (size_t block = 0; block < 6; ++block) {
    const auto begin = logits.begin() + block * 64;
    const auto end = block == 5 ? logits.end() : begin + 64;
    const float largest = *std::max_element(begin, end);
    EXPECT_EQ(blocks.maxima()[block], largest);
    if (largest < 2.3f) continue;
    for (auto it = begin; it != end; ++it) {
      expected.push_back(static_cast<TokenId>(it - logits.begin()));
    }
  }
  blocks.ForEach([](float largest) { return largest >= 2.3f; },
                 [&](TokenId token, float logit) {
                   EXPECT_EQ(logit, logits[token]);
                   visited.push_back(token);
                 });
  EXPECT_EQ(visited, expected);
  EXPECT_GT(visited.size(), 0u);
  EXPECT_LT(visited.size(), logits.size());
}

}  // namespace
}  // namespace baton
