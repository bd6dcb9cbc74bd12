#include "kernels/cpu/read_ahead.h"

#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

int Fetches(ReadAhead list) {
  int fetches = 0;
  while (list.FetchSome()) ++fetches;
  return fetches;
}

TEST(ReadAheadTest, FetchesEveryPieceInFourLinesATime) {
  const std::vector<std::byte> memory(4096);
  ReadAhead list;
  EXPECT_EQ(Fetches(list), 0);
  EXPECT_TRUE(list.Add(memory.data(), 1024));
  EXPECT_EQ(Fetches(list), 4);
  EXPECT_TRUE(list.Add(memory.data() + 2048, 257));
  EXPECT_EQ(Fetches(list), 6);
  EXPECT_TRUE(list.Add(memory.data(), 0));
  EXPECT_EQ(Fetches(list), 6);
}

TEST(ReadAheadTest, HoldsNoMoreBytesThanTheCacheShould) {
  const std::vector<std::byte> memory(2 * ReadAhead::kMaxBytes);
  ReadAhead list;
  EXPECT_TRUE(list.Add(memory.data(), 1024));
  EXPECT_FALSE(list.Add(memory.data() + 1024, memory.size() - 1024));
  EXPECT_FALSE(list.Add(memory.data(), 1024));
  EXPECT_EQ(Fetches(list), static_cast<int>(ReadAhead::kMaxBytes / 256));
}

TEST(ReadAheadTest, HoldsNoMorePiecesThanItHasRoomFor) {
  const std::byte memory[64] = {};
  ReadAhead list;
  for (int i = 1; i < ReadAhead::kMaxPieces; ++i) {
    EXPECT_TRUE(list.Add(memory, 64));
  }
  EXPECT_FALSE(list.Add(memory, 64));
  EXPECT_FALSE(list.Add(memory, 64));
  EXPECT_EQ(Fetches(list), ReadAhead::kMaxPieces);
}

// Weights may be gone by the time a list is read: a prefetch reads nothing.
TEST(ReadAheadTest, MemoryNeedNotBeThere) {
  ReadAhead list;
  list.Add(reinterpret_cast<const std::byte*>(uintptr_t{4096}), 4096);
  EXPECT_EQ(Fetches(list), 16);
}

}  // namespace
}  // namespace baton::kernels::cpu
