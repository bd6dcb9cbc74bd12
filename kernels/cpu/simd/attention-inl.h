#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_

#include "kernels/cpu/simd/elementwise-inl.h"
#include "kernels/cpu/simd/flash_attention-inl.h"
#include "kernels/cpu/simd/fma_chain-inl.h"

// The steps of FlashAttention::Run, in its order.
namespace baton::kernels::cpu::BATON_ISA {

inline float ExpOf(float x) {
  float lanes[kLanes];
  Store(lanes, Exp(Set(x)));
  return lanes[0];
}

template <typename T>
void FlashAttention<T>::ScaleQueries() {
  for (int v = 0; v < vectors_; ++v) {
    const float* from = Query(v);
    float* to = q_ + v * padded_dim_;
    for (int d = 0; d < work_.head_dim; ++d) to[d] = from[d] * work_.scale;
  }
}

template <typename T>
void FlashAttention<T>::ResetPartial(int first_vector) {
  for (int v = first_vector; v < vectors_; ++v) {
    part_maximum_[v] = -__builtin_inff();
    part_weight_[v] = 0.0f;
    float* part = part_ + v * padded_dim_;
    for (int d = 0; d < padded_dim_; ++d) part[d] = 0.0f;
  }
}

template <typename T>
void FlashAttention<T>::WidenTile(int tile, int tokens) {
  for (int j = 0; j < tokens; j += KvLayout::kTokens) {
    const T* k = KeysAt(tile + j);
    const T* v = ValuesAt(tile + j);
    const int elements = work_.head_dim * KvLayout::kTokens;
    float* k_panel = k_tile_ + int64_t{j} * work_.head_dim;
    for (int i = 0; i < elements; i += kLanes) Store(k_panel + i, Load(k + i));
    const int rows =
        tokens - j < KvLayout::kTokens ? tokens - j : int{KvLayout::kTokens};
    for (int t = 0; t < rows; ++t) {
      WidenValues(v + t * work_.head_dim, v_tile_ + (j + t) * padded_dim_);
    }
  }
}

// Blocks lie apart and are too short for the hardware to learn.
template <typename T>
void FlashAttention<T>::Prefetch(int tile) const {
  const int64_t bytes = int64_t{KvLayout::kTokens} * work_.head_dim * sizeof(T);
  const int end = tile + kAttentionTile < LastPosition() + 1
                      ? tile + kAttentionTile
                      : LastPosition() + 1;
  for (int position = tile; position < end; position += KvLayout::kTokens) {
    for (int64_t line = 0; line < bytes; line += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(KeysAt(position)) +
                         line);
      __builtin_prefetch(reinterpret_cast<const char*>(ValuesAt(position)) +
                         line);
    }
  }
}

template <typename T>
void FlashAttention<T>::WidenValues(const T* from, float* to) const {
  int d = 0;
  for (; d + kLanes <= work_.head_dim; d += kLanes) {
    Store(to + d, Load(from + d));
  }
  if (d < work_.head_dim) {
    T rest[kLanes] = {};
    for (int i = 0; d + i < work_.head_dim; ++i) rest[i] = from[d + i];
    Store(to + d, Load(rest));
    d += kLanes;
  }
  for (; d < padded_dim_; ++d) to[d] = 0.0f;
}

template <typename T>
template <typename Keys>
void FlashAttention<T>::Score(const Keys& keys, int first_vector, int tokens) {
  const int panels = (tokens + kPanelOutputs - 1) / kPanelOutputs;
  ForTiles(vectors_ - first_vector, panels * (kPanelOutputs / kLanes),
           [&]<int R, int C>(int row, int column) {
             F32 acc[R][C];
             for (auto& line : acc) {
               for (F32& value : line) value = Set(0.0f);
             }
             const int v = first_vector + row;
             FmaChain<R, C>(q_ + v * padded_dim_, padded_dim_, keys, column, 0,
                            work_.head_dim, acc);
             for (int r = 0; r < R; ++r) {
               float* p = p_ + (v + r) * kAttentionTile + column * kLanes;
               for (int c = 0; c < C; ++c) Store(p + c * kLanes, acc[r][c]);
             }
           });
}

template <typename T>
void FlashAttention<T>::Softmax(int first_vector, int tile) {
  for (int v = first_vector; v < vectors_; ++v) {
    float* p = p_ + v * kAttentionTile;
    const int tokens = VisibleTokens(v, tile);
    F32 maxima = Set(part_maximum_[v]);
    for (int j = 0; j < tokens; j += kLanes) {
      const F32 score = KeepFirst(Load(p + j), tokens - j, -__builtin_inff());
      Store(p + j, score);
      maxima = Max(maxima, score);
    }
    const float maximum = ReduceMax(maxima);
    rescale_[v] = part_maximum_[v] - maximum;
    part_maximum_[v] = maximum;
  }
  for (int v = first_vector; v < vectors_; v += kLanes) {
    const int count = vectors_ - v;
    StoreFirst(rescale_ + v, Exp(LoadFirst(rescale_ + v, count)), count);
  }
  for (int v = first_vector; v < vectors_; ++v) {
    float* p = p_ + v * kAttentionTile;
    const int tokens = VisibleTokens(v, tile);
    const F32 maximum = Set(part_maximum_[v]);
    F32 stripes[kStripeVectors];
    for (F32& stripe : stripes) stripe = Set(0.0f);
    for (int j = 0; j < tokens; j += kLanes) {
      const F32 weight = Exp(Sub(Load(p + j), maximum));
      Store(p + j, weight);
      F32& stripe = stripes[j / kLanes % kStripeVectors];
      stripe = Add(stripe, weight);
    }
    part_weight_[v] =
        __builtin_fmaf(part_weight_[v], rescale_[v], SumStripes(stripes));
  }
}

template <typename T>
template <typename Values>
void FlashAttention<T>::AccumulateValues(const Values& values, int first_vector,
                                         int tile) {
  ForTiles(vectors_ - first_vector, padded_dim_ / kLanes,
           [&]<int R, int C>(int row, int column) {
             const int v = first_vector + row;
             F32 acc[R][C];
             for (int r = 0; r < R; ++r) {
               const F32 rescale = Set(rescale_[v + r]);
               const float* part = part_ + (v + r) * padded_dim_;
               for (int c = 0; c < C; ++c) {
                 acc[r][c] = Mul(Load(part + (column + c) * kLanes), rescale);
               }
             }
             const int common = VisibleTokens(v, tile);
             values.template Chain<R, C>(p_ + v * kAttentionTile, column, 0,
                                         common, acc);
             for (int r = 0; r < R; ++r) {
               F32 alone[1][C];
               for (int c = 0; c < C; ++c) alone[0][c] = acc[r][c];
               values.template Chain<1, C>(p_ + (v + r) * kAttentionTile,
                                           column, common,
                                           VisibleTokens(v + r, tile), alone);
               float* part = part_ + (v + r) * padded_dim_;
               for (int c = 0; c < C; ++c) {
                 Store(part + (column + c) * kLanes, alone[0][c]);
               }
             }
           });
}

template <typename T>
void FlashAttention<T>::KeepSplit() {
  for (int v = 0; v < vectors_; ++v) {
    total_maximum_[v] = part_maximum_[v];
    total_weight_[v] = part_weight_[v];
  }
  for (int i = 0; i < vectors_ * padded_dim_; ++i) total_[i] = part_[i];
}

template <typename T>
void FlashAttention<T>::MergeSplit(int first_vector) {
  for (int v = first_vector; v < vectors_; ++v) {
    const float maximum = total_maximum_[v] > part_maximum_[v]
                              ? total_maximum_[v]
                              : part_maximum_[v];
    const float old_scale = ExpOf(total_maximum_[v] - maximum);
    const float new_scale = ExpOf(part_maximum_[v] - maximum);
    total_maximum_[v] = maximum;
    total_weight_[v] = __builtin_fmaf(total_weight_[v], old_scale,
                                      part_weight_[v] * new_scale);
    float* total = total_ + v * padded_dim_;
    const float* part = part_ + v * padded_dim_;
    for (int d = 0; d < padded_dim_; d += kLanes) {
      Store(total + d, Fma(Load(total + d), Set(old_scale),
                           Mul(Load(part + d), Set(new_scale))));
    }
  }
}

template <typename T>
void FlashAttention<T>::WriteOutputs() const {
  for (int v = 0; v < vectors_; ++v) {
    float* out = work_.out + (Query(v) - work_.q);
    const float* total = total_ + v * padded_dim_;
    const F32 weight = Set(total_weight_[v]);
    for (int d = 0; d < work_.head_dim; d += kLanes) {
      const F32 value = Div(Load(total + d), weight);
      if (d + kLanes <= work_.head_dim) {
        Store(out + d, value);
      } else {
        StoreFirst(out + d, value, work_.head_dim - d);
      }
    }
  }
}

inline void Attention(const AttentionWork& work) {
  if (work.type == KvType::kF16) {
    FlashAttention<F16>(work).Run();
  } else {
    FlashAttention<float>(work).Run();
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_INL_H_
