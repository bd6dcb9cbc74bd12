#ifndef BATON_KERNELS_API_BLOCK_FORMATS_H_
#define BATON_KERNELS_API_BLOCK_FORMATS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/api/tensor.h"

namespace baton::kernels {

// Quantised blocks as ggml (and so GGUF) stores them. Half-precision fields are
// F16 bits. Copy a block out of a file with memcpy: a file promises no
// alignment.

struct BlockQ8_0 {  // w = d · q
  uint16_t d;
  int8_t q[32];
};
struct BlockQ4_0 {  // w = d · (q - 8); q[i]: weight i low, i + 16 high nibble
  uint16_t d;
  uint8_t q[16];
};
struct BlockQ4_1 {  // w = d · q + m
  uint16_t d, m;
  uint8_t q[16];
};
struct BlockQ5_0 {  // w = d · (q - 16); bit i of high: fifth bit of weight i
  uint16_t d;
  uint8_t high[4];
  uint8_t q[16];
};
struct BlockQ5_1 {  // w = d · q + m
  uint16_t d, m;
  uint8_t high[4];
  uint8_t q[16];
};
struct BlockQ4_K {  // w = d · scale_g · q - dmin · min_g, 8 groups of 32
  uint16_t d, dmin;
  uint8_t scales[12];  // 8 scales and 8 mins of 6 bits
  uint8_t q[128];      // groups 2i low, 2i + 1 high nibbles of bytes 32i...
};
struct BlockQ5_K {  // as Q4_K; bit g of high[i]: fifth bit of weight i, group g
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t q[128];
};
struct BlockQ6_K {  // w = d · scale_s · (q - 32), 16 sub-groups of 16
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18);
static_assert(sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

constexpr int kGroup = 32;  // weights per activation group, all formats

// Any of the blocks above taken apart. Group g holds codes 32g..32g+31:
//   w = d · codes                       Q8_0 Q4_0 Q5_0
//   w = d · codes + m                   Q4_1 Q5_1
//   w = d · scale[g] · codes - m · min[g]   Q4_K Q5_K
//   w = d · scale[i / 16] · codes       Q6_K
// Codes are signed: the format's offset is already subtracted.
struct UnpackedBlock {
  uint16_t d = 0;  // F16 bits
  uint16_t m = 0;  // F16 bits
  int8_t scale[16] = {};
  int8_t min[8] = {};
  int8_t codes[256] = {};
};

// Whether `type` is one of the formats above or kI8, not a float type.
bool IsQuantized(TensorType type);
// Whether its formula has an m term.
bool HasMinimum(TensorType type);
// Whether its groups have their own scales (blocks of 256).
bool HasSubScales(TensorType type);

// Takes apart the block at `block`, TraitsOf(type).block_bytes long.
// Requires: one of the formats above.
void UnpackBlock(TensorType type, const std::byte* block, UnpackedBlock* out);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_BLOCK_FORMATS_H_
