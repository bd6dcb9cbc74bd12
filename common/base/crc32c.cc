#include "common/base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace baton {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr size_t kLongStripe = 4096;
constexpr size_t kShortStripe = 256;

// A linear map on 32-bit CRC registers: column i is the image of bit i.
using Matrix = std::array<uint32_t, 32>;

constexpr uint32_t Apply(const Matrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (int bit = 0; bit < 32; ++bit) {
    if (vector >> bit & 1) sum ^= matrix[bit];
  }
  return sum;
}

constexpr Matrix Square(const Matrix& matrix) {
  Matrix square{};
  for (int bit = 0; bit < 32; ++bit) square[bit] = Apply(matrix, matrix[bit]);
  return square;
}

// What `zeros` zero bytes do to a CRC register, as one table per register
// byte. `zeros` is a power of two.
class ZerosTable {
 public:
  constexpr explicit ZerosTable(size_t zeros) {
    Matrix matrix{};
    matrix[0] = kPolynomial;
    for (int bit = 1; bit < 32; ++bit) matrix[bit] = 1u << (bit - 1);
    for (size_t bits = 1; bits < 8 * zeros; bits *= 2) matrix = Square(matrix);
    for (int byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        table_[byte][value] = Apply(matrix, value << 8 * byte);
      }
    }
  }

  uint32_t Shift(uint32_t crc) const {
    return table_[0][crc & 0xff] ^ table_[1][crc >> 8 & 0xff] ^
           table_[2][crc >> 16 & 0xff] ^ table_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> table_{};
};

constexpr ZerosTable kLongZeros(kLongStripe);
constexpr ZerosTable kShortZeros(kShortStripe);

uint64_t Load64(const std::byte* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// Three stripes side by side hide the latency of the instruction.
template <size_t kStripe>
uint64_t ThreeStripes(uint64_t crc, const std::byte* p,
                      const ZerosTable& zeros) {
  uint64_t a = crc;
  uint64_t b = 0;
  uint64_t c = 0;
  for (const std::byte* end = p + kStripe; p < end; p += 8) {
    a = _mm_crc32_u64(a, Load64(p));
    b = _mm_crc32_u64(b, Load64(p + kStripe));
    c = _mm_crc32_u64(c, Load64(p + 2 * kStripe));
  }
  const uint32_t ab =
      zeros.Shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
  return zeros.Shift(ab) ^ static_cast<uint32_t>(c);
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes) {
  uint64_t state = ~crc;
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kLongStripe; left -= 3 * kLongStripe) {
    state = ThreeStripes<kLongStripe>(state, p, kLongZeros);
    p += 3 * kLongStripe;
  }
  for (; left >= 3 * kShortStripe; left -= 3 * kShortStripe) {
    state = ThreeStripes<kShortStripe>(state, p, kShortZeros);
    p += 3 * kShortStripe;
  }
  for (; left >= 8; left -= 8) {
    state = _mm_crc32_u64(state, Load64(p));
    p += 8;
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; --left) {
    narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*p++));
  }
  return ~narrow;
}

}  // namespace baton
