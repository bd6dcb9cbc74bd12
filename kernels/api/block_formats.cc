#include "kernels/api/block_formats.h"

#include <cstring>

namespace baton::kernels {
namespace {

void UnpackNibbles(const uint8_t* q, int offset, int8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>((q[i] & 0x0f) - offset);
    codes[i + 16] = static_cast<int8_t>((q[i] >> 4) - offset);
  }
}

void UnpackFiveBits(const uint8_t* q, const uint8_t* high, int offset,
                    int8_t* codes) {
  UnpackNibbles(q, offset, codes);
  uint32_t bits;
  std::memcpy(&bits, high, sizeof(bits));
  for (int i = 0; i < 32; ++i) {
    const int bit = static_cast<int>(bits >> i & 1);
    codes[i] = static_cast<int8_t>(codes[i] + 16 * bit);
  }
}

void Unpack(const BlockQ8_0& block, UnpackedBlock* out) {
  out->d = block.d;
  std::memcpy(out->codes, block.q, sizeof(block.q));
}

void Unpack(const BlockQ4_0& block, UnpackedBlock* out) {
  out->d = block.d;
  UnpackNibbles(block.q, 8, out->codes);
}

void Unpack(const BlockQ4_1& block, UnpackedBlock* out) {
  out->d = block.d;
  out->m = block.m;
  UnpackNibbles(block.q, 0, out->codes);
}

void Unpack(const BlockQ5_0& block, UnpackedBlock* out) {
  out->d = block.d;
  UnpackFiveBits(block.q, block.high, 16, out->codes);
}

void Unpack(const BlockQ5_1& block, UnpackedBlock* out) {
  out->d = block.d;
  out->m = block.m;
  UnpackFiveBits(block.q, block.high, 0, out->codes);
}

// 12 bytes hold 8 scales and 8 mins of 6 bits: the first four of each in the
// low bits of bytes 0..3 and 4..7, the others in nibbles of bytes 8..11 with
// their top two bits above the first four.
void UnpackSixBitScales(const uint8_t* s, UnpackedBlock* out) {
  for (int g = 0; g < 4; ++g) {
    out->scale[g] = static_cast<int8_t>(s[g] & 63);
    out->min[g] = static_cast<int8_t>(s[g + 4] & 63);
    out->scale[g + 4] =
        static_cast<int8_t>((s[g + 8] & 0x0f) | (s[g] >> 6) << 4);
    out->min[g + 4] =
        static_cast<int8_t>((s[g + 8] >> 4) | (s[g + 4] >> 6) << 4);
  }
}

template <typename Block>
void UnpackSuperBlock(const Block& block, UnpackedBlock* out) {
  out->d = block.d;
  out->m = block.dmin;
  UnpackSixBitScales(block.scales, out);
  for (int pair = 0; pair < 4; ++pair) {
    int8_t* codes = out->codes + 64 * pair;
    const uint8_t* q = block.q + 32 * pair;
    for (int i = 0; i < 32; ++i) codes[i] = static_cast<int8_t>(q[i] & 0x0f);
    for (int i = 0; i < 32; ++i) codes[32 + i] = static_cast<int8_t>(q[i] >> 4);
  }
}

void Unpack(const BlockQ4_K& block, UnpackedBlock* out) {
  UnpackSuperBlock(block, out);
}

void Unpack(const BlockQ5_K& block, UnpackedBlock* out) {
  UnpackSuperBlock(block, out);
  for (int g = 0; g < 8; ++g) {
    int8_t* codes = out->codes + 32 * g;
    for (int i = 0; i < 32; ++i) {
      const int bit = block.high[i] >> g & 1;
      codes[i] = static_cast<int8_t>(codes[i] + 16 * bit);
    }
  }
}

void Unpack(const BlockQ6_K& block, UnpackedBlock* out) {
  out->d = block.d;
  std::memcpy(out->scale, block.scales, sizeof(block.scales));
  for (int g = 0; g < 8; ++g) {  // of 32 codes
    const int quarter = g % 4;
    const uint8_t* low = block.low + 64 * (g / 4) + 32 * (quarter % 2);
    const uint8_t* high = block.high + 32 * (g / 4);
    const int low_shift = quarter < 2 ? 0 : 4;
    int8_t* codes = out->codes + 32 * g;
    for (int i = 0; i < 32; ++i) {
      const int nibble = low[i] >> low_shift & 0x0f;
      const int top = high[i] >> (2 * quarter) & 3;
      codes[i] = static_cast<int8_t>((nibble | top << 4) - 32);
    }
  }
}

template <typename Block>
void CopyAndUnpack(const std::byte* data, UnpackedBlock* out) {
  Block block;
  std::memcpy(&block, data, sizeof(block));
  Unpack(block, out);
}

}  // namespace

bool IsQuantized(TensorType type) { return TraitsOf(type).block_elements > 1; }

bool HasMinimum(TensorType type) {
  return type == TensorType::kQ4_1 || type == TensorType::kQ5_1 ||
         type == TensorType::kQ4_K || type == TensorType::kQ5_K;
}

bool HasSubScales(TensorType type) {
  return TraitsOf(type).block_elements == 256;
}

void UnpackBlock(TensorType type, const std::byte* block, UnpackedBlock* out) {
  switch (type) {
    case TensorType::kQ8_0:
      return CopyAndUnpack<BlockQ8_0>(block, out);
    case TensorType::kQ4_0:
      return CopyAndUnpack<BlockQ4_0>(block, out);
    case TensorType::kQ4_1:
      return CopyAndUnpack<BlockQ4_1>(block, out);
    case TensorType::kQ5_0:
      return CopyAndUnpack<BlockQ5_0>(block, out);
    case TensorType::kQ5_1:
      return CopyAndUnpack<BlockQ5_1>(block, out);
    case TensorType::kQ4_K:
      return CopyAndUnpack<BlockQ4_K>(block, out);
    case TensorType::kQ5_K:
      return CopyAndUnpack<BlockQ5_K>(block, out);
    case TensorType::kQ6_K:
      return CopyAndUnpack<BlockQ6_K>(block, out);
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
    case TensorType::kI8:
      return;
  }
}

}  // namespace baton::kernels
