#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_STATE_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_STATE_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"
#include "kernels/cpu/simd/merge_splits-inl.h"
#include "kernels/cpu/simd/tile_prefetch-inl.h"
#include "kernels/cpu/simd/vector_batch-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

constexpr int kTileVectors = kAttentionTile / kLanes;

// The running softmax of one AttentionWork. A vector is one (row, query head),
// ordered by row: those that see a tile are a suffix of them.
class AttentionState {
 public:
  explicit AttentionState(const AttentionWork& work);

  const AttentionWork& work() const { return work_; }
  int vectors() const { return vectors_; }
  int padded_dim() const { return padded_dim_; }
  int LastPosition() const { return work_.first_position + work_.rows - 1; }
  int FirstVectorAt(int position) const {
    const int row = position - work_.first_position;
    return row > 0 ? row * work_.heads : 0;
  }
  int VisibleTokens(int vector, int tile) const {
    if (tile + kAttentionTile <= work_.first_position) return kAttentionTile;
    const int position = work_.first_position + vector / work_.heads;
    const int tokens = position - tile + 1;
    return tokens < kAttentionTile ? tokens : kAttentionTile;
  }
  const float* Query(int vector) const {
    return work_.q + vector / work_.heads * work_.row_stride +
           vector % work_.heads * work_.head_dim;
  }
  // The next `count` floats of scratch, on a cache line.
  float* Take(int64_t count);

  // K and V of the head in the block that holds `position`.
  const std::byte* Keys(int position) const {
    return work_.blocks[position / KvLayout::kTokens] + work_.k_offset;
  }
  const std::byte* Values(int position) const {
    return work_.blocks[position / KvLayout::kTokens] + work_.v_offset;
  }

  // A split begins, for the vectors that see it.
  void Reset(int first_vector);
  // Turns the scores of a batch into weights; sets rescale.
  void Softmax(const VectorBatch& batch);
  int Visible(const VectorBatch& batch, int unit) const {
    return batch.tiles > 1 ? kAttentionTile
                           : VisibleTokens(batch.first + unit, batch.tile);
  }
  // Merges the split into those before it.
  void EndSplit(int first_vector, bool is_first);
  void WritePartials(int first_vector) const;
  void WriteOutputs() const;

  // Of a unit of the current batch: scores, then weights.
  float* scores(int unit) { return p_ + unit * kAttentionTile; }
  float rescale(int unit) const { return rescale_[unit]; }
  TilePrefetch& prefetch() { return prefetch_; }
  // Of the current split, [padded_dim], not normalised.
  float* out(int vector) { return part_ + int64_t{vector} * padded_dim_; }

 private:
  F32 MaskedMaximum(int unit, int visible);
  void Weigh(int unit, F32 maximum, F32 (&stripes)[kStripeVectors]);

  const AttentionWork& work_;
  const int padded_dim_;
  const int vectors_;
  TilePrefetch prefetch_;
  float* next_;
  float* part_;   // [vectors, padded_dim], of the current split
  float* total_;  // [vectors, padded_dim], of the splits before it
  float* part_maximum_;
  float* part_weight_;
  float* total_maximum_;
  float* total_weight_;
  alignas(64) float p_[kRowBatch * kAttentionTile];
  alignas(64) float rescale_[kRowBatch];
};

inline AttentionState::AttentionState(const AttentionWork& work)
    : work_(work),
      padded_dim_(PaddedHeadDim(work.head_dim)),
      vectors_(work.rows * work.heads),
      prefetch_(work),
      next_(work.scratch +
            (-reinterpret_cast<uintptr_t>(work.scratch) & 63) / sizeof(float)) {
  part_ = Take(int64_t{vectors_} * padded_dim_);
  total_ = Take(int64_t{vectors_} * padded_dim_);
  part_maximum_ = Take(vectors_);
  part_weight_ = Take(vectors_);
  total_maximum_ = Take(vectors_);
  total_weight_ = Take(vectors_);
}

inline float* AttentionState::Take(int64_t count) {
  float* taken = next_;
  next_ += (count + 15) / 16 * 16;
  return taken;
}

inline void AttentionState::Reset(int first_vector) {
  for (int v = first_vector; v < vectors_; ++v) {
    part_maximum_[v] = -__builtin_inff();
    part_weight_[v] = 0.0f;
    for (int d = 0; d < padded_dim_; d += kLanes) Store(out(v) + d, Set(0.0f));
  }
}

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

inline void AttentionState::Weigh(int unit, F32 maximum,
                                  F32 (&stripes)[kStripeVectors]) {
  float* p = scores(unit);
  for (int s = 0; s < kStripeVectors; ++s) {
    const F32 weight = Exp(Sub(Load(p + s * kLanes), maximum));
    Store(p + s * kLanes, weight);
    stripes[s] = weight;
  }
  for (int i = kStripeVectors; i < kTileVectors; ++i) {
    const F32 weight = Exp(Sub(Load(p + i * kLanes), maximum));
    Store(p + i * kLanes, weight);
    F32& stripe = stripes[i % kStripeVectors];
    stripe = Add(stripe, weight);
  }
}

inline void AttentionState::Softmax(const VectorBatch& batch) {
  alignas(64) float maxima[kRowBatch + kLanes];
  alignas(64) float sums[kRowBatch + kLanes];
  const int units = batch.units();
  for (int u = 0; u < units; u += kRowsReduced) {
    F32 rows[kRowsReduced];
    for (int i = 0; i < kRowsReduced; ++i) {
      rows[i] = u + i < units ? MaskedMaximum(u + i, Visible(batch, u + i))
                              : Set(0.0f);
    }
    ReduceMaxRows(rows, maxima + u);
  }
  for (int t = 0, u = 0; t < batch.tiles; ++t, u += batch.count) {
    for (int r = 0; r < batch.count; r += kLanes) {
      const int count = batch.count - r;
      float* maximum = part_maximum_ + batch.first + r;
      const F32 before = LoadFirst(maximum, count);
      const F32 now = Max(before, LoadFirst(maxima + u + r, count));
      StoreFirst(maximum, now, count);
      StoreFirst(maxima + u + r, now, count);
      StoreFirst(rescale_ + u + r, Sub(before, now), count);
    }
  }
  for (int u = 0; u < units; u += kLanes) {
    Store(rescale_ + u, Exp(Load(rescale_ + u)));
  }
  for (int u = 0; u < units; u += kRowsReduced) {
    F32 stripes[kRowsReduced][kStripeVectors];
    for (int i = 0; i < kRowsReduced; ++i) {
      if (u + i < units) {
        Weigh(u + i, Set(maxima[u + i]), stripes[i]);
      } else {
        for (F32& stripe : stripes[i]) stripe = Set(0.0f);
      }
    }
    SumStripesRows(stripes, sums + u);
  }
  for (int t = 0, u = 0; t < batch.tiles; ++t, u += batch.count) {
    for (int r = 0; r < batch.count; r += kLanes) {
      const int count = batch.count - r;
      float* weight = part_weight_ + batch.first + r;
      const F32 before = LoadFirst(weight, count);
      StoreFirst(weight,
                 Fma(before, LoadFirst(rescale_ + u + r, count),
                     LoadFirst(sums + u + r, count)),
                 count);
    }
  }
}

inline void AttentionState::EndSplit(int first_vector, bool is_first) {
  for (int v = first_vector; v < vectors_; ++v) {
    float* total = total_ + int64_t{v} * padded_dim_;
    if (!is_first) {
      MergeSplit(padded_dim_, part_maximum_[v], part_weight_[v], out(v),
                 &total_maximum_[v], &total_weight_[v], total);
      continue;
    }
    total_maximum_[v] = part_maximum_[v];
    total_weight_[v] = part_weight_[v];
    for (int d = 0; d < padded_dim_; d += kLanes) {
      Store(total + d, Load(out(v) + d));
    }
  }
}

inline void AttentionState::WritePartials(int first_vector) const {
  for (int v = first_vector; v < vectors_; ++v) {
    float* to = work_.partials + v * PartialFloats(work_.head_dim);
    const float* from = part_ + int64_t{v} * padded_dim_;
    for (int d = 0; d < padded_dim_; d += kLanes) Store(to + d, Load(from + d));
    to[padded_dim_] = part_maximum_[v];
    to[padded_dim_ + 1] = part_weight_[v];
  }
}

inline void AttentionState::WriteOutputs() const {
  for (int v = 0; v < vectors_; ++v) {
    Normalise(total_ + int64_t{v} * padded_dim_, total_weight_[v],
              work_.head_dim, work_.out + (Query(v) - work_.q));
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_STATE_INL_H_
