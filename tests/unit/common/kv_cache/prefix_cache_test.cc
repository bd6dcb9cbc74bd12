#include "common/kv_cache/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace baton {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

std::vector<PrefixHash> Hashes(uint32_t blocks, TokenId first) {
  std::vector<TokenId> tokens(blocks * kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return HashPrefixes(PrefixSeed("", ""), tokens);
}

class PrefixCacheTest : public testing::Test {
 protected:
  // Blocks that a sequence has written and lets go.
  std::vector<BlockRef> Keep(const std::vector<PrefixHash>& hashes) {
    std::vector<BlockRef> blocks = *pool_.Acquire(
        static_cast<uint32_t>(hashes.size()), BlockUse::kRunning);
    cache_.Insert(hashes, blocks, pool_);
    EXPECT_TRUE(pool_.Release(blocks, BlockUse::kRunning).ok());
    return blocks;
  }
  uint32_t cached() const { return pool_.ledger()[BlockUse::kPrefix]; }

  BlockPool pool_{WorkerEpoch(1), 8};
  PrefixCache cache_;
  const std::vector<PrefixHash> a_ = Hashes(3, 100), b_ = Hashes(3, 500);
};

TEST_F(PrefixCacheTest, EveryPrefixOfWholeBlocksIsFound) {
  const std::vector<BlockRef> blocks = Keep(a_);
  EXPECT_EQ(cached(), 3u);
  EXPECT_EQ(cache_.size(), 3u);
  EXPECT_THAT(cache_.Find(a_[2], 3), ElementsAreArray(blocks));
  EXPECT_THAT(cache_.Find(a_[0], 1), ElementsAre(blocks[0]));
}

TEST_F(PrefixCacheTest, UnknownHashAndWrongLengthFindNothing) {
  Keep(a_);
  EXPECT_THAT(cache_.Find(b_[0], 1), IsEmpty());
  EXPECT_THAT(cache_.Find(a_[2], 2), IsEmpty());
  EXPECT_THAT(cache_.Find(a_[2], 4), IsEmpty());
  EXPECT_THAT(cache_.Find(a_[2], 0), IsEmpty());
}

TEST_F(PrefixCacheTest, WhatIsKeptAlreadyKeepsItsBlock) {
  const std::vector<BlockRef> first = Keep({a_[0], a_[1]});
  const std::vector<BlockRef> again = Keep(a_);
  EXPECT_THAT(cache_.Find(a_[2], 3), ElementsAre(first[0], first[1], again[2]));
  EXPECT_EQ(cached(), 3u);
  EXPECT_EQ(pool_.ledger().free, 5u);
}

TEST_F(PrefixCacheTest, NothingIsKeptOfNoBlocks) {
  cache_.Insert({}, {}, pool_);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(PrefixCacheTest, ChildrenGoBeforeTheirParents) {
  Keep(a_);
  cache_.MakeRoom(6, pool_);
  EXPECT_THAT(cache_.Find(a_[2], 3), IsEmpty());
  EXPECT_EQ(cache_.Find(a_[1], 2).size(), 2u);
  cache_.MakeRoom(7, pool_);
  EXPECT_EQ(cache_.Find(a_[0], 1).size(), 1u);
  EXPECT_EQ(cache_.evicted(), 2u);
}

TEST_F(PrefixCacheTest, WhatWasNotUsedForLongestGoesFirst) {
  Keep(a_);
  Keep(b_);
  cache_.Find(a_[1], 2);
  cache_.MakeRoom(3, pool_);
  EXPECT_THAT(cache_.Find(a_[2], 3), IsEmpty()) << "it was not used";
  cache_.MakeRoom(6, pool_);
  EXPECT_THAT(cache_.Find(b_[0], 1), IsEmpty());
  EXPECT_EQ(cache_.Find(a_[1], 2).size(), 2u);
}

TEST_F(PrefixCacheTest, NoMoreGoesThanIsWanted) {
  Keep(a_);
  cache_.MakeRoom(5, pool_);
  EXPECT_EQ(cache_.size(), 3u) << "five were free";
  cache_.MakeRoom(6, pool_);
  EXPECT_EQ(cache_.size(), 2u);
}

TEST_F(PrefixCacheTest, WhatIsHeldForMoreStaysWithItsParents) {
  const std::vector<BlockRef> blocks = Keep(a_);
  Keep(b_);
  ASSERT_TRUE(pool_.Hold({&blocks[1], 1}, BlockUse::kSending).ok());
  cache_.MakeRoom(7, pool_);
  EXPECT_EQ(pool_.ledger().free, 6u);
  EXPECT_THAT(cache_.Find(a_[1], 2), ElementsAre(blocks[0], blocks[1]));
  ASSERT_TRUE(pool_.Release({&blocks[1], 1}, BlockUse::kSending).ok());
  cache_.MakeRoom(8, pool_);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(PrefixCacheTest, NothingGoesInVain) {
  Keep(a_);
  const auto blocks = pool_.Acquire(4, BlockUse::kRunning);
  cache_.MakeRoom(5, pool_);
  EXPECT_EQ(cache_.size(), 3u) << "only four can be had";
  cache_.MakeRoom(4, pool_);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(PrefixCacheTest, ClearLeavesOtherHoldsAlone) {
  const std::vector<BlockRef> blocks = Keep(a_);
  ASSERT_TRUE(pool_.Hold(blocks, BlockUse::kSending).ok());
  cache_.Clear(pool_);
  EXPECT_EQ(cache_.size(), 0u);
  EXPECT_EQ(cache_.evicted(), 0u);
  EXPECT_EQ(pool_.ledger()[BlockUse::kSending], 3u);
  ASSERT_TRUE(pool_.Release(blocks, BlockUse::kSending).ok());
  EXPECT_EQ(pool_.ledger().free, 8u);
}

TEST_F(PrefixCacheTest, IsTheSameAfterAMove) {
  const std::vector<BlockRef> blocks = Keep(a_);
  PrefixCache moved = std::move(cache_);
  EXPECT_THAT(moved.Find(a_[2], 3), ElementsAreArray(blocks));
  moved.MakeRoom(8, pool_);
  EXPECT_EQ(pool_.ledger().free, 8u);
}

}  // namespace
}  // namespace baton
