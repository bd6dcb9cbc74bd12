#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_SOFTMAX_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_SOFTMAX_INL_H_

#include "kernels/cpu/simd/attention_state-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// Scores of tokens that the vector does not see become -inf.
inline F32 AttentionState::MaskedMaximum(int unit, int visible) {
  float* p = scores(unit);
  if (visible == kAttentionTile) {
    F32 maxima = Load(p);
    for (int i = 1; i < kTileVectors; ++i) {
      maxima = Max(maxima, Load(p + i * kLanes));
    }
    return maxima;
  }
  F32 maxima = Set(-__builtin_inff());
  for (int j = 0; j < kAttentionTile; j += kLanes) {
    const F32 score = KeepFirst(Load(p + j), visible - j, -__builtin_inff());
    Store(p + j, score);
    maxima = Max(maxima, score);
  }
  return maxima;
}

// Exponentials computed side by side: of some units, or of part of one.
constexpr int kExpTogether = kLanes == 16 ? 8 : 4;
constexpr int kUnitsTogether =
    kExpTogether > kTileVectors ? kExpTogether / kTileVectors : 1;

inline void AttentionState::Weigh(int units, const float* maxima,
                                  F32 (*stripes)[kStripeVectors]) {
  for (int u = 0; u < units; u += kUnitsTogether) {
    if (u % 2 == 0) prefetch_.Issue();
    F32 sum[kUnitsTogether * kStripeVectors];
    Repeat<kUnitsTogether * kStripeVectors>(
        [&]<int i>() __attribute__((always_inline)) { sum[i] = Set(0.0f); });
    float* p = scores(u);
    for (int v = 0; v < kTileVectors; v += kExpTogether) {
      F32 weight[kExpTogether];
      Repeat<kExpTogether>([&]<int i>() __attribute__((always_inline)) {
        weight[i] =
            Sub(Load(p + i * kLanes), Set(maxima[u + i / kTileVectors]));
      });
      Exp2Each(weight);
      Repeat<kExpTogether>([&]<int i>() __attribute__((always_inline)) {
        Store(p + i * kLanes, weight[i]);
        constexpr int kSum = i / kTileVectors * kStripeVectors;
        F32& stripe = sum[kSum + (v + i) % kStripeVectors];
        stripe = Add(stripe, weight[i]);
      });
      p += kExpTogether * kLanes;
    }
    Repeat<kUnitsTogether * kStripeVectors>(
        [&]<int i>() __attribute__((always_inline)) {
          stripes[u + i / kStripeVectors][i % kStripeVectors] = sum[i];
        });
  }
}

inline void AttentionState::Softmax(const VectorBatch& batch) {
  // Whole vectors are stored and loaded, though some lanes are of no unit: a
  // load waits for the memory if it takes part of a store, or several.
  alignas(64) float found[kRowBatch + kLanes];
  alignas(64) float maxima[kRowBatch + kLanes] = {};
  alignas(64) float sums[kRowBatch + kLanes];
  const int units = batch.units();
  for (int u = 0; u < units; u += kRowsReduced) {
    F32 rows[kRowsReduced];
    for (int i = 0; i < kRowsReduced; ++i) {
      rows[i] = u + i < units ? MaskedMaximum(u + i, Visible(batch, u + i))
                              : Set(-__builtin_inff());
    }
    ReduceMaxRows(rows, found + u);
  }
  for (int t = 0, u = 0; t < batch.tiles; ++t, u += batch.count) {
    for (int r = 0; r < batch.count; r += kLanes) {
      const int count = batch.count - r;
      float* maximum = part_maximum_ + batch.first + r;
      const F32 before = LoadFirst(maximum, count);
      const F32 now = Max(before, Load(found + u + r));
      StoreFirst(maximum, now, count);
      Store(maxima + u + r, now);
      Store(rescale_ + u + r, Sub(before, now));
    }
  }
  for (int u = 0; u < units; u += kLanes) {
    Store(rescale_ + u, Exp2(Load(rescale_ + u)));
  }
  // Of rows beyond the last unit, too, which mean nothing.
  F32 stripes[kRowBatch][kStripeVectors];
  Weigh(units, maxima, stripes);
  for (int u = 0; u < units; u += kRowsReduced) {
    SumStripesRows(stripes + u, sums + u);
  }
  for (int t = 0, u = 0; t < batch.tiles; ++t, u += batch.count) {
    for (int r = 0; r < batch.count; r += kLanes) {
      const int count = batch.count - r;
      float* weight = part_weight_ + batch.first + r;
      const F32 before = LoadFirst(weight, count);
      StoreFirst(weight,
                 Fma(before, Load(rescale_ + u + r), Load(sums + u + r)),
                 count);
    }
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_SOFTMAX_INL_H_
