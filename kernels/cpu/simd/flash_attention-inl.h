#ifndef BATON_KERNELS_CPU_SIMD_FLASH_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_FLASH_ATTENTION_INL_H_

#include "kernels/cpu/kernel_table.h"

namespace baton::kernels::cpu::BATON_ISA {

// Flash attention of one AttentionWork. A vector is one (row, query head);
// vectors are ordered by row, so those that see a tile are a suffix of them and
// how many of its tokens they see never decreases.
template <typename T>
class FlashAttention {
 public:
  explicit FlashAttention(const AttentionWork& work);
  void Run();

 private:
  int LastPosition() const { return work_.first_position + work_.rows - 1; }
  int FirstVectorAt(int position) const {
    const int row = position - work_.first_position;
    return row > 0 ? row * work_.heads : 0;
  }
  int VisibleTokens(int vector, int tile) const {
    const int position = work_.first_position + vector / work_.heads;
    const int tokens = position - tile + 1;
    return tokens < kAttentionTile ? tokens : kAttentionTile;
  }
  const float* Query(int vector) const {
    return work_.q + vector / work_.heads * work_.row_stride +
           vector % work_.heads * work_.head_dim;
  }

  void ScaleQueries();
  void ResetPartial(int first_vector);
  void WidenTile(int tile, int tokens);
  void WidenValues(const T* from, float* to) const;
  void Score(int first_vector, int tokens);
  void Softmax(int first_vector, int tile);
  void AccumulateValues(int first_vector, int tile);
  void MergeSplit(int first_vector);
  void KeepSplit();
  void WriteOutputs() const;

  const AttentionWork& work_;
  const int padded_dim_;
  const int vectors_;
  float* k_tile_;  // [4 panels, head_dim, 16 tokens]
  float* v_tile_;  // [64 tokens, padded_dim]
  float* q_;       // [vectors, padded_dim], scaled
  float* p_;       // [vectors, 64]: scores, then weights
  float* part_;    // [vectors, padded_dim], of the current split
  float* total_;   // [vectors, padded_dim], of the splits before it
  float* part_maximum_;
  float* part_weight_;
  float* total_maximum_;
  float* total_weight_;
  float* rescale_;
};

template <typename T>
FlashAttention<T>::FlashAttention(const AttentionWork& work)
    : work_(work),
      padded_dim_(PaddedHeadDim(work.head_dim)),
      vectors_(work.rows * work.heads) {
  float* next = work.scratch;
  const auto take = [&next](int64_t count) {
    float* taken = next;
    next += count;
    return taken;
  };
  k_tile_ = take(int64_t{kAttentionTile} * work.head_dim);
  v_tile_ = take(int64_t{kAttentionTile} * padded_dim_);
  q_ = take(int64_t{vectors_} * padded_dim_);
  p_ = take(int64_t{vectors_} * kAttentionTile);
  part_ = take(int64_t{vectors_} * padded_dim_);
  total_ = take(int64_t{vectors_} * padded_dim_);
  part_maximum_ = take(vectors_);
  part_weight_ = take(vectors_);
  total_maximum_ = take(vectors_);
  total_weight_ = take(vectors_);
  rescale_ = take(vectors_);
}

template <typename T>
void FlashAttention<T>::Run() {
  ScaleQueries();
  for (int split = 0; split <= LastPosition(); split += kAttentionSplit) {
    const int end = split + kAttentionSplit <= LastPosition()
                        ? split + kAttentionSplit
                        : LastPosition() + 1;
    ResetPartial(FirstVectorAt(split));
    for (int tile = split; tile < end; tile += kAttentionTile) {
      const int tokens =
          end - tile < kAttentionTile ? end - tile : kAttentionTile;
      const int first_vector = FirstVectorAt(tile);
      WidenTile(tile, tokens);
      Score(first_vector, tokens);
      Softmax(first_vector, tile);
      AccumulateValues(first_vector, tile);
    }
    if (split == 0) {
      KeepSplit();
    } else {
      MergeSplit(FirstVectorAt(split));
    }
  }
  WriteOutputs();
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_FLASH_ATTENTION_INL_H_
