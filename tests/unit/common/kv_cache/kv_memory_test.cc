#include "common/kv_cache/kv_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace baton {
namespace {

using ::testing::HasSubstr;

constexpr kernels::KvLayout kLayout{
    .layers = 3, .kv_heads = 2, .head_dim = 8, .type = kernels::KvType::kF16};

bool AllEqual(absl::Span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](std::byte b) { return b == value; });
}

TEST(KvMemoryTest, BlocksAreContiguousAndZero) {
  auto memory = KvMemory::Create(kLayout, 4);
  ASSERT_TRUE(memory.ok()) << memory.status();
  KvMemory& kv = **memory;
  EXPECT_EQ(kv.blocks(), 4u);
  EXPECT_EQ(kv.layout(), kLayout);
  EXPECT_EQ(kv.all().size(), 4 * kLayout.block_bytes());
  EXPECT_EQ(kv.BlockSpan(BlockId(2)).size(), kLayout.block_bytes());
  EXPECT_EQ(kv.Block(BlockId(3)), kv.all().data() + 3 * kLayout.block_bytes());
  EXPECT_TRUE(AllEqual(kv.all(), std::byte{0}));
}

TEST(KvMemoryTest, ClearTouchesOneBlockOnly) {
  auto memory = KvMemory::Create(kLayout, 3);
  ASSERT_TRUE(memory.ok());
  KvMemory& kv = **memory;
  std::ranges::fill(kv.all(), std::byte{0x5a});
  kv.Clear(BlockId(1));
  EXPECT_TRUE(AllEqual(kv.BlockSpan(BlockId(0)), std::byte{0x5a}));
  EXPECT_TRUE(AllEqual(kv.BlockSpan(BlockId(1)), std::byte{0}));
  EXPECT_TRUE(AllEqual(kv.BlockSpan(BlockId(2)), std::byte{0x5a}));
}

TEST(KvMemoryTest, RefusesSizesThatMakeNoSense) {
  for (const kernels::KvLayout& layout :
       {kernels::KvLayout{},
        kernels::KvLayout{.layers = -1, .kv_heads = 1, .head_dim = 1}}) {
    EXPECT_EQ(KvMemory::Create(layout, 1).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(KvMemory::Create(kLayout, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto overflow = KvMemory::Create(
      {.layers = 1 << 30, .kv_heads = 1 << 20, .head_dim = 1 << 20}, 1 << 20);
  EXPECT_EQ(overflow.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(overflow.status().message(), HasSubstr("address space"));
}

TEST(KvMemoryTest, NamesTheBytesThatCannotBeMapped) {
  const auto huge = KvMemory::Create(
      {.layers = 1 << 20, .kv_heads = 1 << 10, .head_dim = 1 << 10}, 1 << 10);
  ASSERT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(huge.status().message(),
              HasSubstr("cannot map 72057594037927936 bytes"));
}

}  // namespace
}  // namespace baton
