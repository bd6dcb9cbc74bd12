#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_

#include "kernels/cpu/simd/float_attention-inl.h"
#include "kernels/cpu/simd/int8_attention-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

template <typename Cache>
void FlashAttention(const AttentionWork& work) {
  AttentionState state(work);
  Cache cache(&state);
  const int last = state.LastPosition();
  const int work_end = work.context_end <= last ? work.context_end : last + 1;
  for (int split = work.context_begin; split < work_end;
       split += kAttentionSplit) {
    const int end =
        split + kAttentionSplit < work_end ? split + kAttentionSplit : work_end;
    const int split_vector = state.FirstVectorAt(split);
    state.Reset(split_vector);
    for (int tile = split; tile < end; tile += kAttentionTile) {
      const int tokens =
          end - tile < kAttentionTile ? end - tile : kAttentionTile;
      const int next = tile + kAttentionTile;
      const int next_end =
          next + kAttentionTile < work_end ? next + kAttentionTile : work_end;
      const int vectors = state.vectors() - state.FirstVectorAt(tile);
      state.prefetch().Begin(next, next_end,
                             (vectors + 3) / 4 * Cache::kPrefetchParts);
      cache.BeginTile(tile, tokens);
      for (int v = state.FirstVectorAt(tile); v < state.vectors();
           v += kRowBatch) {
        const int rest = state.vectors() - v;
        const int count = rest < kRowBatch ? rest : kRowBatch;
        cache.Score(v, count);
        state.Softmax(v, count, tile);
        cache.AccumulateValues(v, count);
      }
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
