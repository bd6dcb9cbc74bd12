#ifndef BATON_KERNELS_CPU_SIMD_INT8_WEIGHTS_INL_H_
#define BATON_KERNELS_CPU_SIMD_INT8_WEIGHTS_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"
#include "kernels/cpu/simd/tile_prefetch-inl.h"
#include "kernels/cpu/simd/vector_batch-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// Attention weights of a batch in u8, with the scales of V in them; a unit is a
// row of 64 tokens (vector_batch-inl.h).
class Int8Weights {
 public:
  // p times the scales of V, zero for tokens not visible.
  void Scale(int unit, const float* scales, int visible, float* p) {
    I32 bits = AbsBits(Set(0.0f));
    for (int j = 0; j < kAttentionTile; j += kLanes) {
      F32 weight = Mul(Load(p + j), Load(scales + j));
      if (visible < kAttentionTile) {
        weight = KeepFirst(weight, visible - j, 0.0f);
      }
      Store(p + j, weight);
      bits = Max(bits, AbsBits(weight));
    }
    bits_[unit] = bits;
  }

  // To u8, p being the weights of unit 0. All units were scaled.
  void Quantize(int units, const float* p, TilePrefetch* prefetch);

  const uint8_t* codes(int unit) const {
    return codes_ + unit * kAttentionTile;
  }
  const float* scales(int unit) const { return scale_ + unit; }

 private:
  I32 bits_[kRowBatch];  // the largest of a unit
  alignas(64) uint8_t codes_[kRowBatch * kAttentionTile];
  alignas(64) float scale_[kRowBatch];
};

inline void Int8Weights::Quantize(int units, const float* p,
                                  TilePrefetch* prefetch) {
  alignas(64) float maxima[kRowBatch];
  alignas(64) float inverse[kRowBatch];
  for (int u = 0; u < units; u += kRowsReduced) {
    I32 rows[kRowsReduced];
    for (int i = 0; i < kRowsReduced; ++i) {
      rows[i] = u + i < units ? bits_[u + i] : AbsBits(Set(0.0f));
    }
    ReduceMaxRows(rows, maxima + u);
  }
  for (int u = 0; u < units; u += kLanes) {
    const F32 maximum = Load(maxima + u);
    Store(scale_ + u, Div(maximum, Set(255.0f)));
    Store(inverse + u, Div(Set(255.0f), maximum));
  }
  for (int unit = 0; unit < units; ++unit, p += kAttentionTile) {
    if (unit % 2 == 0) prefetch->Issue();
    uint8_t* codes = codes_ + unit * kAttentionTile;
    const auto bits = __builtin_bit_cast(int32_t, maxima[unit]);
    const bool tiny = bits < kTinyMaximumBits;
    if (tiny || bits >= kInfinityBits) {
      scale_[unit] = tiny ? 0.0f : __builtin_nanf("");
      for (int j = 0; j < kAttentionTile; ++j) codes[j] = 0;
      continue;
    }
    const F32 factor = Set(inverse[unit]);
    for (int j = 0; j < kAttentionTile; j += kLanes) {
      StoreUint8(codes + j, Mul(Load(p + j), factor));
    }
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_INT8_WEIGHTS_INL_H_
