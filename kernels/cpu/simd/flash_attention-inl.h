#ifndef BATON_KERNELS_CPU_SIMD_FLASH_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_FLASH_ATTENTION_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/fma_chain-inl.h"

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

  // K [head_dim, 16] and V [16, head_dim] of the block that holds `position`.
  const T* KeysAt(int position) const {
    return reinterpret_cast<const T*>(
        work_.blocks[position / KvLayout::kTokens] + work_.k_offset);
  }
  const T* ValuesAt(int position) const {
    return reinterpret_cast<const T*>(
        work_.blocks[position / KvLayout::kTokens] + work_.v_offset);
  }

  void ScaleQueries();
  void ResetPartial(int first_vector);
  void WidenTile(int tile, int tokens);
  void Prefetch(int tile) const;
  void WidenValues(const T* from, float* to) const;
  template <typename Keys>
  void Score(const Keys& keys, int first_vector, int tokens);
  void Softmax(int first_vector, int tile);
  template <typename Values>
  void AccumulateValues(const Values& values, int first_vector, int tile);
  void MergeSplit(int first_vector);
  void KeepSplit();
  void WriteOutputs() const;

  // A tile's K where it lies, as an operand of FmaChain.
  struct BlockKeys {
    const FlashAttention* attention;
    int tile;
    static constexpr int64_t k_stride = KvLayout::kTokens;

    const T* vector(int v) const {
      const int token = v * kLanes;
      return attention->KeysAt(tile + token) + token % KvLayout::kTokens;
    }
  };

  // acc += p[from..to) · V of a tile, as it lies or as widened; p [R, 64].
  struct BlockValues {
    const FlashAttention* attention;
    int tile;

    template <int R, int C>
    void Chain(const float* p, int column, int from, int to,
               F32 (&acc)[R][C]) const {
      while (from < to) {
        const int first = from / KvLayout::kTokens * KvLayout::kTokens;
        const int block_end = first + KvLayout::kTokens;
        const int end = block_end < to ? block_end : to;
        const PanelView<T> values = {attention->ValuesAt(tile + first),
                                     attention->work_.head_dim, kPanelOutputs};
        FmaChain<R, C>(p + first, kAttentionTile, values, column, from - first,
                       end - first, acc);
        from = end;
      }
    }
  };
  struct TileValues {
    PanelView<float> values;

    template <int R, int C>
    void Chain(const float* p, int column, int from, int to,
               F32 (&acc)[R][C]) const {
      FmaChain<R, C>(p, kAttentionTile, values, column, from, to, acc);
    }
  };

  // Few vectors convert K and V as they read them; more are served by one
  // conversion of the tile.
  static constexpr int kInPlaceVectors = 8;

  const AttentionWork& work_;
  const int padded_dim_;
  const int vectors_;
  const bool in_place_;
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
      vectors_(work.rows * work.heads),
      in_place_(vectors_ <= kInPlaceVectors &&
                work.head_dim % kPanelOutputs == 0) {
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
      Prefetch(tile + kAttentionTile);
      if (in_place_) {
        Score(BlockKeys{this, tile}, first_vector, tokens);
        Softmax(first_vector, tile);
        AccumulateValues(BlockValues{this, tile}, first_vector, tile);
      } else {
        WidenTile(tile, tokens);
        Score(PanelView<float>{k_tile_, KvLayout::kTokens,
                               int64_t{KvLayout::kTokens} * work_.head_dim},
              first_vector, tokens);
        Softmax(first_vector, tile);
        AccumulateValues(TileValues{{v_tile_, padded_dim_, kPanelOutputs}},
                         first_vector, tile);
      }
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
