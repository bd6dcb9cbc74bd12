#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_STATE_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_STATE_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"
#include "kernels/cpu/simd/merge_splits-inl.h"
#include "kernels/cpu/simd/tile_prefetch-inl.h"
#include "kernels/cpu/simd/vector_batch-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

constexpr int kTileVectors = kAttentionTile / kLanes;

// The running softmax of one AttentionWork. Those vectors of a kv head that see
// a tile are a suffix of them.
class AttentionState {
 public:
  explicit AttentionState(const AttentionWork& work);

  const AttentionWork& work() const { return work_; }
  int vectors() const { return vectors_; }
  int head_vectors() const { return head_vectors_; }
  int padded_dim() const { return padded_dim_; }
  int LastPosition() const { return work_.first_position + work_.rows - 1; }
  // The first vector of a kv head that sees `position`.
  int FirstVectorAt(int position) const {
    const int row = position - work_.first_position;
    return row > 0 ? row * work_.heads : 0;
  }
  int VisibleTokens(int vector, int tile) const {
    if (tile + kAttentionTile <= work_.first_position) return kAttentionTile;
    const int row = vector % head_vectors_ / work_.heads;
    const int position = work_.first_position + row;
    const int tokens = position - tile + 1;
    return tokens < kAttentionTile ? tokens : kAttentionTile;
  }
  const float* Query(int vector) const {
    const int row = vector % head_vectors_ / work_.heads;
    const int head =
        vector / head_vectors_ * work_.heads + vector % work_.heads;
    return work_.q + row * work_.row_stride + head * work_.head_dim;
  }
  // The next `count` floats of scratch, on a cache line.
  float* Take(int64_t count);

  // Of a kv head of the work, in a block.
  size_t KeysOffset(int head) const {
    return work_.k_offset + head * work_.head_bytes;
  }
  size_t ValuesOffset(int head) const {
    return work_.v_offset + head * work_.head_bytes;
  }
  // K and V of a kv head in the block that holds `position`.
  const std::byte* Keys(int position, int head) const {
    return work_.blocks[position / KvLayout::kTokens] + KeysOffset(head);
  }
  const std::byte* Values(int position, int head) const {
    return work_.blocks[position / KvLayout::kTokens] + ValuesOffset(head);
  }

  // Calls body(kv head, first vector, count) for the kv heads of a batch.
  template <typename Body>
  [[gnu::always_inline]] void ForHeads(const VectorBatch& batch,
                                       Body body) const {
    const int end = batch.first + batch.count;
    for (int v = batch.first; v < end;) {
      const int head = v / head_vectors_;
      const int head_end = (head + 1) * head_vectors_;
      const int count = (head_end < end ? head_end : end) - v;
      body(head, v, count);
      v += count;
    }
  }

  // The vector after v among those that are `first_vector` or later ones of
  // their kv head.
  int NextVector(int v, int first_vector) const {
    return ++v % head_vectors_ == 0 ? v + first_vector : v;
  }
  // A split begins, for the vectors of a kv head from `first_vector` on.
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
  const float* rescales(int unit) const { return rescale_ + unit; }
  TilePrefetch& prefetch() { return prefetch_; }
  // Of the current split, [padded_dim], not normalised.
  float* out(int vector) { return part_ + int64_t{vector} * padded_dim_; }

 private:
  static void Swap(float*& a, float*& b) {
    float* const held = a;
    a = b;
    b = held;
  }
  F32 MaskedMaximum(int unit, int visible);
  void Weigh(int units, const float* maxima, F32 (*stripes)[kStripeVectors]);

  const AttentionWork& work_;
  const int padded_dim_;
  const int head_vectors_;
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
  alignas(64) float rescale_[kRowBatch + kLanes];
};

inline AttentionState::AttentionState(const AttentionWork& work)
    : work_(work),
      padded_dim_(PaddedHeadDim(work.head_dim)),
      head_vectors_(work.head_vectors()),
      vectors_(work.vectors()),
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
  for (int v = first_vector; v < vectors_; v = NextVector(v, first_vector)) {
    part_maximum_[v] = -__builtin_inff();
    part_weight_[v] = 0.0f;
    for (int d = 0; d < padded_dim_; d += kLanes) Store(out(v) + d, Set(0.0f));
  }
}

inline void AttentionState::EndSplit(int first_vector, bool is_first) {
  if (is_first) {  // all vectors see it
    Swap(part_, total_);
    Swap(part_maximum_, total_maximum_);
    Swap(part_weight_, total_weight_);
    return;
  }
  if (first_vector > 0) {
    for (int v = first_vector; v < vectors_; v = NextVector(v, first_vector)) {
      MergeSplit(padded_dim_, part_maximum_[v], part_weight_[v], out(v),
                 &total_maximum_[v], &total_weight_[v],
                 total_ + int64_t{v} * padded_dim_);
    }
    return;
  }
  alignas(64) float earlier[kLanes], later[kLanes];
  for (int v = 0; v < vectors_; v += kLanes) {
    const int count = vectors_ - v;
    const MergeFactors factors = FactorsOf(LoadFirst(total_maximum_ + v, count),
                                           LoadFirst(part_maximum_ + v, count));
    StoreFirst(total_maximum_ + v, factors.maximum, count);
    const F32 later_weight =
        Mul(LoadFirst(part_weight_ + v, count), factors.later);
    StoreFirst(
        total_weight_ + v,
        Fma(LoadFirst(total_weight_ + v, count), factors.earlier, later_weight),
        count);
    Store(earlier, factors.earlier);
    Store(later, factors.later);
    for (int i = 0; i < kLanes && i < count; ++i) {
      MergeOutputs(padded_dim_, out(v + i), earlier[i], later[i],
                   total_ + int64_t{v + i} * padded_dim_);
    }
  }
}

inline void AttentionState::WritePartials(int first_vector) const {
  for (int v = first_vector; v < vectors_; v = NextVector(v, first_vector)) {
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
