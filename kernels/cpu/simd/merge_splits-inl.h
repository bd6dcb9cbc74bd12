#ifndef BATON_KERNELS_CPU_SIMD_MERGE_SPLITS_INL_H_
#define BATON_KERNELS_CPU_SIMD_MERGE_SPLITS_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

inline float Exp2Of(float x) {
  float lanes[kLanes];
  Store(lanes, Exp2(Set(x)));
  return lanes[0];
}

// One more split joins a softmax over those before it.
inline void MergeSplit(int padded_dim, float maximum, float weight,
                       const float* out, float* total_maximum,
                       float* total_weight, float* total_out) {
  const float now = *total_maximum > maximum ? *total_maximum : maximum;
  const float old_scale = Exp2Of(*total_maximum - now);
  const float new_scale = Exp2Of(maximum - now);
  *total_maximum = now;
  *total_weight = __builtin_fmaf(*total_weight, old_scale, weight * new_scale);
  for (int d = 0; d < padded_dim; d += kLanes) {
    Store(total_out + d, Fma(Load(total_out + d), Set(old_scale),
                             Mul(Load(out + d), Set(new_scale))));
  }
}

inline void Normalise(const float* total, float weight, int head_dim,
                      float* out) {
  const F32 divisor = Set(weight);
  for (int d = 0; d < head_dim; d += kLanes) {
    const F32 value = Div(Load(total + d), divisor);
    if (d + kLanes <= head_dim) {
      Store(out + d, value);
    } else {
      StoreFirst(out + d, value, head_dim - d);
    }
  }
}

// As KernelTable::merge_attention.
inline void MergeAttention(const AttentionMerge& merge) {
  const int64_t floats = PartialFloats(merge.head_dim);
  const int padded_dim = PaddedHeadDim(merge.head_dim);
  const int head_vectors = merge.rows * merge.heads;
  for (int v = 0; v < merge.kv_heads * head_vectors; ++v) {
    const int row = v % head_vectors / merge.heads;
    const int head = v / head_vectors * merge.heads + v % merge.heads;
    const int splits = (merge.first_position + row) / kAttentionSplit + 1;
    float* total = merge.partials + v * floats;
    for (int split = 1; split < splits; ++split) {
      const float* part = total + split * merge.split_stride;
      MergeSplit(padded_dim, part[padded_dim], part[padded_dim + 1], part,
                 total + padded_dim, total + padded_dim + 1, total);
    }
    Normalise(total, total[padded_dim + 1], merge.head_dim,
              merge.out + row * merge.row_stride + head * merge.head_dim);
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_MERGE_SPLITS_INL_H_
