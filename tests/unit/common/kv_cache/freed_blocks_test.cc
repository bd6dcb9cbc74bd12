#include "common/kv_cache/freed_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace baton {
namespace {

constexpr kernels::KvLayout kLayout{
    .layers = 1, .kv_heads = 1, .head_dim = 8, .type = kernels::KvType::kF16};

class FreedBlocksTest : public testing::Test {
 protected:
  bool Poisoned(const BlockRef& block) {
    const absl::Span<std::byte> bytes = memory_->BlockSpan(block.id);
    return std::ranges::all_of(
        bytes, [](std::byte byte) { return byte == std::byte{0xff}; });
  }
  std::vector<BlockRef> Take(uint32_t count) {
    return *pool_.Acquire(count, BlockUse::kRunning);
  }

  BlockPool pool_{WorkerEpoch(1), 4};
  std::unique_ptr<KvMemory> memory_ = *KvMemory::Create(kLayout, 4);
  FreedBlocks freed_{pool_};
};

TEST_F(FreedBlocksTest, OnlyWhatBecameFreeIsPoisoned) {
  const auto blocks = Take(3);
  ASSERT_TRUE(
      pool_.Release(absl::MakeSpan(blocks).subspan(1, 1), BlockUse::kRunning)
          .ok());
  freed_.Poison(pool_, *memory_);
  EXPECT_FALSE(Poisoned(blocks[0]));
  EXPECT_TRUE(Poisoned(blocks[1]));
  EXPECT_FALSE(Poisoned(blocks[2]));
}

TEST_F(FreedBlocksTest, ANewOwnersBlockIsLeftAlone) {
  const auto old = Take(1);
  ASSERT_TRUE(pool_.Release(old, BlockUse::kRunning).ok());
  const auto again = Take(1);
  ASSERT_EQ(again[0].id, old[0].id);
  freed_.Poison(pool_, *memory_);
  EXPECT_FALSE(Poisoned(again[0]));
  ASSERT_TRUE(pool_.Release(again, BlockUse::kRunning).ok());
  freed_.Poison(pool_, *memory_);
  EXPECT_TRUE(Poisoned(again[0]));
}

TEST_F(FreedBlocksTest, ABlockStillHeldForAnotherUseIsNotFree) {
  const auto block = Take(1);
  ASSERT_TRUE(pool_.Hold(block, BlockUse::kSending).ok());
  ASSERT_TRUE(pool_.Release(block, BlockUse::kRunning).ok());
  freed_.Poison(pool_, *memory_);
  EXPECT_FALSE(Poisoned(block[0]));
}

}  // namespace
}  // namespace baton
