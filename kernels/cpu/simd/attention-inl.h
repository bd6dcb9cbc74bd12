#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_

#include "kernels/cpu/simd/attention_softmax-inl.h"
#include "kernels/cpu/simd/float_attention-inl.h"
#include "kernels/cpu/simd/int8_attention-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// Goes through the tiles of one AttentionWork, in each through the kv heads, so
// that memory is read in longer pieces. Few vectors fill a batch together:
// those of several kv heads, or of several tiles.
template <typename Cache>
class FlashAttention {
 public:
  explicit FlashAttention(const AttentionWork& work)
      : work_(work),
        state_(work),
        cache_(&state_),
        heads_together_(HeadsTogether()),
        most_tiles_(MostTiles()),
        end_(work.context_end <= state_.LastPosition()
                 ? work.context_end
                 : state_.LastPosition() + 1) {}

  void Run();

 private:
  // Tiles and kv heads whose K, then V, is read as one.
  struct Step {
    int tile;
    int tiles;
    int head;
    int heads;
  };

  int HeadsTogether() const;
  int MostTiles() const;
  int TilesTogether(int tile) const;
  Step StepAt(int tile, int head) const;
  Step After(const Step& step) const {
    const int head = step.head + step.heads;
    return head < work_.kv_heads
               ? StepAt(step.tile, head)
               : StepAt(step.tile + step.tiles * kAttentionTile, 0);
  }
  int SplitEnd(int position) const {
    const int end = (position / kAttentionSplit + 1) * kAttentionSplit;
    return end < end_ ? end : end_;
  }

  void BeginTile(int tile) {
    const int rest = SplitEnd(tile) - tile;
    cache_.BeginTile(tile, rest < kAttentionTile ? rest : kAttentionTile);
  }
  void Add(const Step& step);
  void AddBatch(const VectorBatch& batch);
  void PrefetchBoth(const Step& step, int parts);  // K and V
  [[gnu::noinline]] void FetchFirst();

  const AttentionWork& work_;
  AttentionState state_;
  Cache cache_;
  const int heads_together_;
  const int most_tiles_;
  const int end_;
};

template <typename Cache>
int FlashAttention<Cache>::HeadsTogether() const {
  const int heads = kRowBatch / state_.head_vectors();
  if (!cache_.in_place() || heads < 1) return 1;
  return heads < work_.kv_heads ? heads : work_.kv_heads;
}

template <typename Cache>
int FlashAttention<Cache>::MostTiles() const {
  const auto tile_bytes =
      static_cast<int>(2 * work_.kv_heads * work_.head_bytes *
                       (kAttentionTile / KvLayout::kTokens));
  const int near = kBytesTogether / tile_bytes;
  const int full = kRowBatch / state_.vectors();
  const int tiles = near < full ? near : full;
  return cache_.in_place() && tiles > 1 ? tiles : 1;
}

// How many tiles from `tile` on go through the softmax together: those of a
// split that all vectors see whole.
template <typename Cache>
int FlashAttention<Cache>::TilesTogether(int tile) const {
  if (most_tiles_ == 1) return 1;
  const int seen = work_.first_position + 1;
  const int end = SplitEnd(tile);
  const int whole = ((end < seen ? end : seen) - tile) / kAttentionTile;
  return whole < 1 ? 1 : whole < most_tiles_ ? whole : most_tiles_;
}

template <typename Cache>
typename FlashAttention<Cache>::Step FlashAttention<Cache>::StepAt(
    int tile, int head) const {
  const int left = work_.kv_heads - head;
  return {tile, TilesTogether(tile), head,
          left < heads_together_ ? left : heads_together_};
}

template <typename Cache>
void FlashAttention<Cache>::PrefetchBoth(const Step& step, int parts) {
  const int to = step.tile + step.tiles * kAttentionTile;
  state_.prefetch().Begin(step.tile, to < end_ ? to : end_,
                          state_.KeysOffset(step.head),
                          state_.ValuesOffset(step.head), step.heads, parts);
}

// What nothing has fetched yet, in one burst. Inlined it would spill register
// tiles.
template <typename Cache>
void FlashAttention<Cache>::FetchFirst() {
  PrefetchBoth(StepAt(work_.context_begin, 0), 1);
  state_.prefetch().Finish();
}

template <typename Cache>
void FlashAttention<Cache>::Add(const Step& step) {
  const int head_vectors = state_.head_vectors();
  const int first = state_.FirstVectorAt(step.tile);
  const int count = head_vectors - first;
  PrefetchBoth(After(step), (count + 3) / 4 * step.heads * step.tiles *
                                Cache::kPrefetchParts);
  const int begin = step.head * head_vectors;
  if (step.tiles > 1 || (first == 0 && step.heads > 1)) {
    AddBatch({begin, step.heads * head_vectors, step.tile, step.tiles});
    return;
  }
  for (int head = step.head; head < step.head + step.heads; ++head) {
    BeginTile(step.tile);
    cache_.CopyTile(head);
    for (int v = first; v < head_vectors; v += kRowBatch) {
      const int rest = head_vectors - v;
      AddBatch({head * head_vectors + v, rest < kRowBatch ? rest : kRowBatch,
                step.tile, 1});
    }
  }
}

template <typename Cache>
void FlashAttention<Cache>::AddBatch(const VectorBatch& batch) {
  for (int t = 0; t < batch.tiles; ++t) {
    BeginTile(batch.tile + t * kAttentionTile);
    cache_.Score(batch, t);
  }
  state_.Softmax(batch);
  cache_.PrepareWeights(batch);
  for (int t = 0; t < batch.tiles; ++t) {
    BeginTile(batch.tile + t * kAttentionTile);
    cache_.AccumulateValues(batch, t);
  }
}

template <typename Cache>
void FlashAttention<Cache>::Run() {
  FetchFirst();
  for (int split = work_.context_begin; split < end_;
       split += kAttentionSplit) {
    const int first = state_.FirstVectorAt(split);
    state_.Reset(first);
    const int end = SplitEnd(split);
    for (Step step = StepAt(split, 0); step.tile < end; step = After(step)) {
      Add(step);
    }
    if (work_.partials != nullptr) {
      state_.WritePartials(first);
    } else {
      state_.EndSplit(first, split == 0);
    }
  }
  if (work_.partials == nullptr) state_.WriteOutputs();
}

inline void Attention(const AttentionWork& work) {
  switch (work.type) {
    case KvType::kF16:
      return FlashAttention<FloatCache<F16>>(work).Run();
    case KvType::kF32:
      return FlashAttention<FloatCache<float>>(work).Run();
    case KvType::kI8:
      return FlashAttention<Int8Cache>(work).Run();
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
