#include "kernels/cpu/weight_arena.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

using Piece = std::shared_ptr<std::byte[]>;

Piece Allocate(WeightArena* arena, size_t bytes) {
  auto piece = arena->Allocate(bytes);
  EXPECT_TRUE(piece.ok()) << piece.status();
  return *std::move(piece);
}

uintptr_t Address(const Piece& piece) {
  return reinterpret_cast<uintptr_t>(piece.get());
}

TEST(WeightArenaTest, PiecesFollowEachOtherFromAHugePageOn) {
  WeightArena arena;
  const Piece first = Allocate(&arena, 100);
  const Piece second = Allocate(&arena, 64);
  const Piece third = Allocate(&arena, 1);
  EXPECT_EQ(Address(first) % WeightArena::kHugePage, 0u);
  EXPECT_EQ(Address(second), Address(first) + 128);
  EXPECT_EQ(Address(third), Address(second) + 64);
}

TEST(WeightArenaTest, MemoryIsZeroAndOutlivesTheArena) {
  std::vector<Piece> pieces;
  {
    WeightArena arena;
    for (const size_t bytes : {size_t{1} << 20, size_t{3}, size_t{40} << 20}) {
      pieces.push_back(Allocate(&arena, bytes));
      for (size_t i = 0; i < bytes; i += 4093) {
        ASSERT_EQ(pieces.back()[i], std::byte{0});
      }
      std::memset(pieces.back().get(), static_cast<int>(pieces.size()), bytes);
    }
  }
  EXPECT_EQ(pieces[0][(1 << 20) - 1], std::byte{1});
  EXPECT_EQ(pieces[1][2], std::byte{2});
  EXPECT_EQ(pieces[2][(40 << 20) - 1], std::byte{3});
}

TEST(WeightArenaTest, LargePiecesLeaveTheRoomOfTheSlabToSmallOnes) {
  WeightArena arena;
  const Piece small = Allocate(&arena, 64);
  const Piece large = Allocate(&arena, WeightArena::kSlabBytes + 1);
  const Piece next = Allocate(&arena, 64);
  EXPECT_EQ(Address(large) % WeightArena::kHugePage, 0u);
  EXPECT_EQ(Address(next), Address(small) + 64);
}

TEST(WeightArenaTest, RefusesWhatCannotBeMapped) {
  WeightArena arena;
  for (const size_t bytes : {size_t{1} << 60, SIZE_MAX}) {
    const auto piece = arena.Allocate(bytes);
    EXPECT_EQ(piece.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(piece.status().message().find("bytes for weights: Cannot"),
              std::string::npos)
        << piece.status();
  }
}

}  // namespace
}  // namespace baton::kernels::cpu
