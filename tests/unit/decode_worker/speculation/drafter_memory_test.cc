#include "decode_worker/speculation/drafter_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace baton::decode {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DrafterMemoryTest, GivesNoMoreThanItHas) {
  DrafterMemory memory(100);
  EXPECT_TRUE(memory.Take(60));
  EXPECT_FALSE(memory.Take(41));
  EXPECT_EQ(memory.held(), 60u);
  EXPECT_TRUE(memory.Take(40));
  EXPECT_FALSE(memory.Take(1));
  EXPECT_FALSE(memory.Take(~size_t{0}));
  memory.Give(60);
  EXPECT_EQ(memory.held(), 40u);
  EXPECT_TRUE(memory.Take(60));
}

TEST(ShareTokensTest, WhoHasLittleToReadReadsItAll) {
  EXPECT_THAT(ShareTokens({}, 100), IsEmpty());
  EXPECT_THAT(ShareTokens({1, 3, 0}, 100), ElementsAre(1, 3, 0));
  EXPECT_THAT(ShareTokens({5000, 1, 2, 90}, 100), ElementsAre(48, 1, 2, 49));
  EXPECT_THAT(ShareTokens({5000, 5000, 10}, 100), ElementsAre(45, 45, 10));
  EXPECT_THAT(ShareTokens({5000}, 100), ElementsAre(100));
  EXPECT_THAT(ShareTokens({7, 7, 7}, 2), ElementsAre(1, 1, 0));
}

TEST(ShareTokensTest, TheBudgetHoldsAndNobodyWaitsForEver) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const uint32_t budget = 1 + random() % 200;
    std::vector<uint64_t> unread(1 + random() % 300);
    for (uint64_t& tokens : unread) tokens = random() % 3000;
    const uint64_t all = std::accumulate(unread.begin(), unread.end(), 0ull);
    for (uint64_t step = 0; step < all / budget + 1; ++step) {
      const auto shares = ShareTokens(unread, budget);
      uint64_t sum = 0, left = 0;
      for (size_t i = 0; i < unread.size(); ++i) {
        ASSERT_LE(shares[i], unread[i]);
        left += unread[i];
        unread[i] -= shares[i];
        sum += shares[i];
      }
      ASSERT_EQ(sum, std::min<uint64_t>(budget, left));
    }
    EXPECT_THAT(unread, testing::Each(0));
  }
}

}  // namespace
}  // namespace baton::decode
