#ifndef BATON_KERNELS_CPU_SIMD_MERGE_SPLITS_INL_H_
#define BATON_KERNELS_CPU_SIMD_MERGE_SPLITS_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// The factors with which a softmax over earlier splits and one over a later
// split join: 2 to their maxima less that of both.
struct MergeFactors {
  F32 maximum;
  F32 earlier;
  F32 later;
};
inline MergeFactors FactorsOf(F32 earlier, F32 later) {
  const F32 maximum = Max(earlier, later);
  F32 factors[] = {Sub(earlier, maximum), Sub(later, maximum)};
  Exp2Each(factors);
  return {maximum, factors[0], factors[1]};
}

inline void MergeOutputs(int padded_dim, const float* out, float earlier,
                         float later, float* total) {
  for (int d = 0; d < padded_dim; d += kLanes) {
    Store(total + d,
          Fma(Load(total + d), Set(earlier), Mul(Load(out + d), Set(later))));
  }
}

// One more split joins a softmax over those before it.
inline void MergeSplit(int padded_dim, float maximum, float weight,
                       const float* out, float* total_maximum,
                       float* total_weight, float* total_out) {
  const MergeFactors factors = FactorsOf(Set(*total_maximum), Set(maximum));
  float now[kLanes], earlier[kLanes], later[kLanes];
  Store(now, factors.maximum);
  Store(earlier, factors.earlier);
  Store(later, factors.later);
  *total_maximum = now[0];
  *total_weight = __builtin_fmaf(*total_weight, earlier[0], weight * later[0]);
  MergeOutputs(padded_dim, out, earlier[0], later[0], total_out);
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
