#include "common/base/random_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace baton {
namespace {

TEST(RandomBytesTest, FillsWhatItWasGivenAndNothingElse) {
  FillRandom({});
  std::array<std::byte, 64> bytes{};
  FillRandom(absl::MakeSpan(bytes).subspan(8, 48));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(bytes[i], std::byte{0});
    EXPECT_EQ(bytes[56 + i], std::byte{0});
  }
  EXPECT_GT(std::set<std::byte>(bytes.begin(), bytes.end()).size(), 16u);
}

TEST(RandomBytesTest, FillsLargeBuffersToTheEnd) {
  std::vector<std::byte> bytes(1 << 20);
  FillRandom(absl::MakeSpan(bytes));
  const std::set<std::byte> tail(bytes.end() - 4096, bytes.end());
  EXPECT_GT(tail.size(), 200u);
}

TEST(RandomBytesTest, NumbersDoNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(RandomNonZero64());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_FALSE(seen.contains(0));
}

}  // namespace
}  // namespace baton
