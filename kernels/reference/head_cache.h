#ifndef BATON_KERNELS_REFERENCE_HEAD_CACHE_H_
#define BATON_KERNELS_REFERENCE_HEAD_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/api/kv_layout.h"

namespace baton::kernels::reference {

// Where one kv head of one layer of a sequence lies.
struct HeadCache {
  const KvLayout* layout;
  int layer;
  int kv_head;
  absl::Span<std::byte* const> blocks;

  // F16 and F32.
  float k(int position, int d) const;
  float v(int position, int d) const;
  // I8: x = code · scale.
  int k_code(int position, int d) const;
  int v_code(int position, int d) const;
  float k_scale(int position) const;
  float v_scale(int position) const;

  std::byte* key_bytes(int position) const;    // K of the head in its block
  std::byte* value_bytes(int position) const;  // V
};

// Rounds to the cache type and writes one head of one position.
void StoreHead(const HeadCache& cache, int position, const float* k,
               const float* v);

// Walsh-Hadamard transform, not normalised, of each block of HadamardBlock()
// numbers: steps h = 1, 2, 4, ...: (a, b) -> (a + b, a - b) for b h after a.
// I8 caches hold K transformed, and q is transformed and divided by the block:
// q·k stays what it is, but the few large dimensions that K has are spread over
// all, so that one scale per head serves.
constexpr int HadamardBlock(int head_dim) { return head_dim & -head_dim; }
void Hadamard(int head_dim, float* x);

// x = q · scale: one head in int8, by the rule of QuantizeRow for one group.
struct QuantizedHead {
  std::vector<int8_t> q;
  float scale = 0.0f;
};
QuantizedHead QuantizeHead(const float* x, int head_dim);

// Attention weights of one tile in u8, none negative: scale = max / 255,
// code = rne(w · (255 / max)); all zero when max is below kTinyMaximum; scale
// NaN and codes zero when one of them is NaN or infinite.
constexpr int kTileTokens = 64;
struct QuantizedWeights {
  uint8_t codes[kTileTokens] = {};
  float scale = 0.0f;
};
QuantizedWeights QuantizeWeights(const float* weights, int count);

}  // namespace baton::kernels::reference

#endif  // BATON_KERNELS_REFERENCE_HEAD_CACHE_H_
