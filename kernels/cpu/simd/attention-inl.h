#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_

#include "kernels/cpu/simd/float_attention-inl.h"
#include "kernels/cpu/simd/int8_attention-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// How many tiles from `tile` on go through the softmax together: those that
// all vectors see whole, so that a few vectors, too, make a full batch.
inline int TilesTogether(const AttentionState& state, int tile, int end) {
  const int seen = state.work().first_position + 1;
  const int whole = ((end < seen ? end : seen) - tile) / kAttentionTile;
  const auto tile_bytes = static_cast<int>(
      2 * state.work().head_bytes * (kAttentionTile / KvLayout::kTokens));
  const int near = kBytesTogether / tile_bytes;
  const int most = kRowBatch / state.vectors();
  const int tiles = whole < most ? whole : most;
  return tiles < 1 || near < 1 ? 1 : tiles < near ? tiles : near;
}

template <typename Cache>
void AddTile(int tile, int tokens, AttentionState* state, Cache* cache) {
  cache->BeginTile(tile, tokens);
  cache->CopyTile();
  for (int v = state->FirstVectorAt(tile); v < state->vectors();
       v += kRowBatch) {
    const int rest = state->vectors() - v;
    const VectorBatch batch = {v, rest < kRowBatch ? rest : kRowBatch, tile, 1};
    cache->Score(batch, 0);
    state->Softmax(batch);
    cache->PrepareWeights(batch);
    cache->AccumulateValues(batch, 0);
  }
}

template <typename Cache>
void AddTiles(int tile, int tiles, AttentionState* state, Cache* cache) {
  const VectorBatch batch = {0, state->vectors(), tile, tiles};
  for (int t = 0; t < tiles; ++t) {
    cache->BeginTile(tile + t * kAttentionTile, kAttentionTile);
    cache->Score(batch, t);
  }
  state->Softmax(batch);
  cache->PrepareWeights(batch);
  for (int t = 0; t < tiles; ++t) {
    cache->BeginTile(tile + t * kAttentionTile, kAttentionTile);
    cache->AccumulateValues(batch, t);
  }
}

// The first two tiles, which nothing has fetched yet, in one burst. Inlined it
// would spill register tiles.
[[gnu::noinline]] inline void FetchFirstTiles(const AttentionWork& work,
                                              int work_end) {
  const int end = work.context_begin + 2 * kAttentionTile;
  TilePrefetch prefetch(work);
  prefetch.Begin(work.context_begin, end < work_end ? end : work_end, 1);
  prefetch.Issue();
}

template <typename Cache>
void FlashAttention(const AttentionWork& work) {
  AttentionState state(work);
  Cache cache(&state);
  const int last = state.LastPosition();
  const int work_end = work.context_end <= last ? work.context_end : last + 1;
  FetchFirstTiles(work, work_end);
  for (int split = work.context_begin; split < work_end;
       split += kAttentionSplit) {
    const int end =
        split + kAttentionSplit < work_end ? split + kAttentionSplit : work_end;
    const int split_vector = state.FirstVectorAt(split);
    state.Reset(split_vector);
    for (int tile = split; tile < end;) {
      const int tiles = cache.in_place() ? TilesTogether(state, tile, end) : 1;
      const int next = tile + tiles * kAttentionTile;
      const int next_end = next + tiles * kAttentionTile;
      const int vectors = state.vectors() - state.FirstVectorAt(tile);
      state.prefetch().Begin(next, next_end < work_end ? next_end : work_end,
                             (vectors + 3) / 4 * tiles * Cache::kPrefetchParts);
      if (tiles > 1) {
        AddTiles(tile, tiles, &state, &cache);
      } else {
        const int tokens =
            end - tile < kAttentionTile ? end - tile : kAttentionTile;
        AddTile(tile, tokens, &state, &cache);
      }
      tile = next;
    }
    if (work.partials != nullptr) {
      state.WritePartials(split_vector);
    } else {
      state.EndSplit(split_vector, split == 0);
    }
  }
  if (work.partials == nullptr) state.WriteOutputs();
}

inline void Attention(const AttentionWork& work) {
  switch (work.type) {
    case KvType::kF16:
      return FlashAttention<FloatCache<F16>>(work);
    case KvType::kF32:
      return FlashAttention<FloatCache<float>>(work);
    case KvType::kI8:
      return FlashAttention<Int8Cache>(work);
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
