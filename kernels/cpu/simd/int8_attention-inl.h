#ifndef BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_

#include "kernels/cpu/simd/attention_state-inl.h"
#include "kernels/cpu/simd/fma_chain-inl.h"
#include "kernels/cpu/simd/int8_head-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// q·Kᵀ and p·V of a tile in exact int32, K and V where they lie.
class Int8Cache {
 public:
  // Of a row of register tiles, half in Score, half in AccumulateValues.
  static constexpr int kPrefetchParts = 8;

  explicit Int8Cache(AttentionState* state);

  void BeginTile(int tile, int tokens) {
    tile_ = tile;
    tokens_ = tokens;
  }
  void Score(int first, int count);
  void AccumulateValues(int first, int count);

 private:
  static constexpr int kBlock = KvLayout::kTokens;
  static constexpr int kQuad = KvLayout::kQuad;

  const float* ScalesOf(const std::byte* head) const {
    return reinterpret_cast<const float*>(head + state_.work().code_bytes);
  }
  static int32_t QuadAt(const void* p) {
    int32_t quad;
    __builtin_memcpy(&quad, p, sizeof(quad));
    return quad;
  }
  // The scales of V go into the weights, and those to u8.
  void QuantizeWeights(int first, int count);
  I32 ScaleWeights(int r, int visible);
  // Register tiles; inlined into their callers they would spill.
  template <int R, int C>
  [[gnu::noinline]] void ScoreTile(int vector, int row, int column);
  template <int R, int C>
  [[gnu::noinline]] void AccumulateTile(int vector, int row, int column);

  AttentionState& state_;
  const int head_dim_;
  const int padded_dim_;
  int8_t* q_;         // [vectors, padded_dim]
  float* q_scale_;    // [vectors]
  int32_t* q_start_;  // [vectors], what dots with offset codes start from
  int tile_ = 0;
  int tokens_ = 0;
  alignas(64) uint8_t u_[kRowBatch * kAttentionTile];
  alignas(64) float u_scale_[kRowBatch];
};

inline Int8Cache::Int8Cache(AttentionState* state)
    : state_(*state),
      head_dim_(state->work().head_dim),
      padded_dim_(state->padded_dim()),
      q_(reinterpret_cast<int8_t*>(
          state->Take(int64_t{state->vectors()} * padded_dim_ / 4))),
      q_scale_(state->Take(state->vectors())),
      q_start_(reinterpret_cast<int32_t*>(state->Take(state->vectors()))) {
  float* scaled = state->Take(padded_dim_);
  for (int d = 0; d < padded_dim_; ++d) scaled[d] = 0.0f;
  const float share = 1.0f / static_cast<float>(head_dim_ & -head_dim_);
  for (int v = 0; v < state->vectors(); ++v) {
    const float* from = state->Query(v);
    for (int d = 0; d < head_dim_; ++d) {
      scaled[d] = from[d] * state->work().scale;
    }
    Hadamard(head_dim_, scaled);
    for (int d = 0; d < head_dim_; ++d) scaled[d] *= share;
    int8_t* q = q_ + v * padded_dim_;
    q_scale_[v] = QuantizeHead(scaled, head_dim_, q);
    int32_t sum = 0;
    for (int d = 0; d < padded_dim_; d += 16) sum += Sum16(q + d);
    q_start_[v] = SignedDotStart(sum);
  }
}

inline void Int8Cache::Score(int first, int count) {
  const int panels = (tokens_ + kBlock - 1) / kBlock;
  ForTiles(count, panels * (kBlock / kLanes),
           [&]<int R, int C>(int row, int column) {
             ScoreTile<R, C>(first + row, row, column);
           });
}

template <int R, int C>
void Int8Cache::ScoreTile(int vector, int row, int column) {
  const int quads = (head_dim_ + kQuad - 1) / kQuad;
  const int64_t stride = padded_dim_;
  const int8_t* q = q_ + vector * stride;
  const uint8_t* codes[C];
  for (int c = 0; c < C; ++c) {
    const int token = (column + c) * kLanes;
    codes[c] = reinterpret_cast<const uint8_t*>(state_.Keys(tile_ + token)) +
               token % kBlock * kQuad;
  }
  I32 acc[R][C];
  for (int r = 0; r < R; ++r) {
    for (I32& value : acc[r]) value = SetInt(q_start_[vector + r]);
  }
  const int part = (quads + 3) / 4;
  for (int begin = 0; begin < quads; begin += part) {
    const int end = begin + part < quads ? begin + part : quads;
    state_.prefetch().Issue();
    for (int k = begin; k < end; ++k) {
      Bytes loaded[C];
      for (int c = 0; c < C; ++c) {
        loaded[c] = LoadBytes(codes[c] + k * kBlock * kQuad);
      }
      for (int r = 0; r < R; ++r) {
        const int32_t quad = QuadAt(q + r * stride + k * kQuad);
        for (int c = 0; c < C; ++c) {
          acc[r][c] = AddDotSigned(acc[r][c], loaded[c], quad);
        }
      }
    }
  }
  F32 scales[C];
  for (int c = 0; c < C; ++c) {
    const int token = (column + c) * kLanes;
    scales[c] = Load(ScalesOf(state_.Keys(tile_ + token)) + token % kBlock);
  }
  for (int r = 0; r < R; ++r) {
    const F32 scale = Set(q_scale_[vector + r]);
    float* p = state_.scores(row + r) + column * kLanes;
    for (int c = 0; c < C; ++c) {
      Store(p + c * kLanes, Mul(ToFloat(acc[r][c]), Mul(scale, scales[c])));
    }
  }
}

// Returns the largest bits of them.
inline I32 Int8Cache::ScaleWeights(int r, int visible) {
  float* p = state_.scores(r);
  I32 bits = AbsBits(Set(0.0f));
  for (int j = 0; j < kAttentionTile; j += kLanes) {
    F32 weight = Set(0.0f);
    if (j < visible) {
      const float* scales = ScalesOf(state_.Values(tile_ + j)) + j % kBlock;
      weight = Mul(Load(p + j), Load(scales));
      if (j + kLanes > visible) weight = KeepFirst(weight, visible - j, 0.0f);
    }
    Store(p + j, weight);
    bits = Max(bits, AbsBits(weight));
  }
  return bits;
}

inline void Int8Cache::QuantizeWeights(int first, int count) {
  alignas(64) float maxima[kRowBatch];
  alignas(64) float inverse[kRowBatch];
  for (int r = 0; r < count; r += kRowsReduced) {
    I32 rows[kRowsReduced];
    for (int i = 0; i < kRowsReduced; ++i) {
      rows[i] =
          r + i < count
              ? ScaleWeights(r + i, state_.VisibleTokens(first + r + i, tile_))
              : AbsBits(Set(0.0f));
    }
    ReduceMaxRows(rows, maxima + r);
  }
  for (int r = 0; r < count; r += kLanes) {
    const F32 maximum = Load(maxima + r);
    Store(u_scale_ + r, Div(maximum, Set(255.0f)));
    Store(inverse + r, Div(Set(255.0f), maximum));
  }
  for (int r = 0; r < count; ++r) {
    uint8_t* u = u_ + r * kAttentionTile;
    const auto bits = __builtin_bit_cast(int32_t, maxima[r]);
    const bool tiny = bits < kTinyMaximumBits;
    if (tiny || bits >= kInfinityBits) {
      u_scale_[r] = tiny ? 0.0f : __builtin_nanf("");
      for (int j = 0; j < kAttentionTile; ++j) u[j] = 0;
      continue;
    }
    const F32 factor = Set(inverse[r]);
    const float* p = state_.scores(r);
    for (int j = 0; j < kAttentionTile; j += kLanes) {
      StoreUint8(u + j, Mul(Load(p + j), factor));
    }
  }
}

inline void Int8Cache::AccumulateValues(int first, int count) {
  QuantizeWeights(first, count);
  ForTiles(count, padded_dim_ / kLanes, [&]<int R, int C>(int row, int column) {
    AccumulateTile<R, C>(first + row, row, column);
  });
}

// The last vector of a row of V reaches beyond it, at most into the scales.
template <int R, int C>
void Int8Cache::AccumulateTile(int vector, int row, int column) {
  I32 acc[R][C];
  for (auto& line : acc) {
    for (I32& value : line) value = SetInt(0);
  }
  const int64_t quad_bytes = int64_t{head_dim_} * kQuad;
  for (int j = 0; j < tokens_; j += kBlock) {
    const auto* codes =
        reinterpret_cast<const uint8_t*>(state_.Values(tile_ + j)) +
        column * kLanes * kQuad;
    const uint8_t* u = u_ + row * kAttentionTile + j;
    state_.prefetch().Issue();
    for (int k = 0; k < kBlock; k += kQuad, codes += quad_bytes) {
      Bytes loaded[C];
      for (int c = 0; c < C; ++c) {
        loaded[c] = LoadBytes(codes + c * kLanes * kQuad);
      }
      for (int r = 0; r < R; ++r) {
        const int32_t quad = QuadAt(u + r * kAttentionTile + k);
        for (int c = 0; c < C; ++c) {
          acc[r][c] = AddDotUnsigned(acc[r][c], loaded[c], quad);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    const F32 scale = Set(u_scale_[row + r]);
    const F32 rescale = Set(state_.rescale(row + r));
    float* out = state_.out(vector + r) + column * kLanes;
    for (int c = 0; c < C; ++c) {
      Store(out + c * kLanes, Fma(ToFloat(acc[r][c]), scale,
                                  Mul(Load(out + c * kLanes), rescale)));
    }
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_
