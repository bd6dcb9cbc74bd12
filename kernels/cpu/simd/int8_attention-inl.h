#ifndef BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_

#include "kernels/cpu/simd/attention_state-inl.h"
#include "kernels/cpu/simd/fma_chain-inl.h"
#include "kernels/cpu/simd/int8_head-inl.h"
#include "kernels/cpu/simd/int8_weights-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// q·Kᵀ and p·V of a tile in exact int32, K and V where they lie.
class Int8Cache {
 public:
  explicit Int8Cache(AttentionState* state);

  void BeginTile(int tile, int tokens) {
    tile_ = tile;
    tokens_ = tokens;
  }
  // Of a row of register tiles, half while scoring.
  static constexpr int kPrefetchParts = 2;

  bool in_place() const { return true; }
  void CopyTile() {}
  // Of the tile begun, which is the one of this number in the batch.
  void Score(const VectorBatch& batch, int number);
  // The scales of V go into the weights, and those to u8.
  void PrepareWeights(const VectorBatch& batch);
  void AccumulateValues(const VectorBatch& batch, int number);

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
  void LoadScales(int tile, int visible, float* scales) const;
  // Register tiles; inlined into their callers they would spill.
  template <int R, int C>
  [[gnu::noinline]] void ScoreTile(int vector, int unit, int column);
  template <int R, int C>
  [[gnu::noinline]] void AccumulateTile(int vector, int unit, int column);

  AttentionState& state_;
  const int head_dim_;
  const int padded_dim_;
  int8_t* q_;         // [vectors, padded_dim]
  float* q_scale_;    // [vectors]
  int32_t* q_start_;  // [vectors], what dots with offset codes start from
  int tile_ = 0;
  int tokens_ = 0;
  Int8Weights weights_;
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

inline void Int8Cache::Score(const VectorBatch& batch, int number) {
  const int unit = number * batch.count;
  const int panels = (tokens_ + kBlock - 1) / kBlock;
  ForTiles(batch.count, panels * (kBlock / kLanes),
           [&]<int R, int C>(int row, int column) {
             ScoreTile<R, C>(batch.first + row, unit + row, column);
           });
}

template <int R, int C>
void Int8Cache::ScoreTile(int vector, int unit, int column) {
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
  state_.prefetch().Issue();
  for (int k = 0; k < quads; ++k) {
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
  F32 scales[C];
  for (int c = 0; c < C; ++c) {
    const int token = (column + c) * kLanes;
    scales[c] = Load(ScalesOf(state_.Keys(tile_ + token)) + token % kBlock);
  }
  for (int r = 0; r < R; ++r) {
    const F32 scale = Set(q_scale_[vector + r]);
    float* p = state_.scores(unit + r) + column * kLanes;
    for (int c = 0; c < C; ++c) {
      Store(p + c * kLanes, Mul(ToFloat(acc[r][c]), Mul(scale, scales[c])));
    }
  }
}

inline void Int8Cache::PrepareWeights(const VectorBatch& batch) {
  for (int t = 0, unit = 0; t < batch.tiles; ++t, unit += batch.count) {
    alignas(64) float scales[kAttentionTile];
    LoadScales(batch.tile + t * kAttentionTile,
               state_.Visible(batch, batch.count - 1), scales);
    for (int r = 0; r < batch.count; ++r) {
      weights_.Scale(unit + r, scales, state_.Visible(batch, r),
                     state_.scores(unit + r));
    }
  }
  weights_.Quantize(batch.units(), state_.scores(0));
}

// Scales of V in a tile, zero for tokens that no vector sees.
inline void Int8Cache::LoadScales(int tile, int visible, float* scales) const {
  for (int j = 0; j < kAttentionTile; j += kLanes) {
    F32 scale = Set(0.0f);
    if (j < visible) {
      const float* from = ScalesOf(state_.Values(tile + j)) + j % kBlock;
      scale = KeepFirst(Load(from), visible - j, 0.0f);
    }
    Store(scales + j, scale);
  }
}

inline void Int8Cache::AccumulateValues(const VectorBatch& batch, int number) {
  const int unit = number * batch.count;
  ForTiles(batch.count, padded_dim_ / kLanes,
           [&]<int R, int C>(int row, int column) {
             AccumulateTile<R, C>(batch.first + row, unit + row, column);
           });
}

// The last vector of a row of V reaches beyond it, at most into the scales.
template <int R, int C>
void Int8Cache::AccumulateTile(int vector, int unit, int column) {
  I32 acc[R][C];
  for (auto& line : acc) {
    for (I32& value : line) value = SetInt(0);
  }
  state_.prefetch().Issue();
  const int64_t quad_bytes = int64_t{head_dim_} * kQuad;
  for (int j = 0; j < tokens_; j += kBlock) {
    const auto* codes =
        reinterpret_cast<const uint8_t*>(state_.Values(tile_ + j)) +
        column * kLanes * kQuad;
    const uint8_t* u = weights_.codes(unit) + j;
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
    const F32 scale = Set(weights_.scale(unit + r));
    const F32 rescale = Set(state_.rescale(unit + r));
    float* out = state_.out(vector + r) + column * kLanes;
    for (int c = 0; c < C; ++c) {
      Store(out + c * kLanes, Fma(ToFloat(acc[r][c]), scale,
                                  Mul(Load(out + c * kLanes), rescale)));
    }
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_
