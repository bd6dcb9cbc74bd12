#include "common/base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace baton {
namespace {

absl::Span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Bit by bit, from the definition.
uint32_t OracleCrc32c(absl::Span<const std::byte> bytes) {
  uint32_t crc = 0xffffffff;
  for (const std::byte b : bytes) {
    crc ^= static_cast<uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
  }
  return ~crc;
}

std::vector<std::byte> RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
  // RFC 3720 B.4.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  std::vector<std::byte> ascending(32);
  for (int i = 0; i < 32; ++i) ascending[i] = static_cast<std::byte>(i);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32cTest, EqualsTheDefinitionForEveryShape) {
  const std::vector<std::byte> bytes = RandomBytes(100'000, 1);
  const absl::Span<const std::byte> all(bytes);
  for (size_t size = 0; size < 2000; ++size) {
    ASSERT_EQ(Crc32c(all.subspan(size % 13, size)),
              OracleCrc32c(all.subspan(size % 13, size)))
        << size;
  }
  for (const size_t size : {12287, 12288, 12289, 13056, 24576, 37000, 99'999}) {
    for (const size_t offset : {0, 1}) {
      ASSERT_EQ(Crc32c(all.subspan(offset, size)),
                OracleCrc32c(all.subspan(offset, size)))
          << size;
    }
  }
}

TEST(Crc32cTest, ExtendsPieceByPiece) {
  const std::vector<std::byte> bytes = RandomBytes(60'000, 2);
  const absl::Span<const std::byte> all(bytes);
  const uint32_t whole = Crc32c(all);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    uint32_t crc = 0;
    for (size_t at = 0; at < all.size();) {
      const size_t n = std::min<size_t>(random() % 20'000, all.size() - at);
      crc = ExtendCrc32c(crc, all.subspan(at, n));
      at += n;
    }
    ASSERT_EQ(crc, whole);
  }
}

TEST(Crc32cTest, SeesEverySingleBitFlip) {
  std::vector<std::byte> bytes = RandomBytes(1000, 4);
  const uint32_t crc = Crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(Crc32c(bytes), crc);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace baton
