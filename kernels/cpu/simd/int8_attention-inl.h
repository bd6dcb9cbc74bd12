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
  // For every four vectors of a tile: in register tiles, then in the softmax.
  static constexpr int kPrefetchParts = 8 * kTileVectors / kChainColumns + 4;

  bool in_place() const { return true; }
  void CopyTile(int /*head*/) {}
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
  void LoadScales(int tile, int head, int visible, float* scales) const;
  // K or V of a kv head in the blocks of the tile begun.
  using Blocks = const uint8_t * [kAttentionTile / kBlock];
  void FindBlocks(size_t offset, Blocks& blocks) const {
    std::byte* const* block = state_.work().blocks + tile_ / kBlock;
    for (int j = 0; j < tokens_; j += kBlock) {
      blocks[j / kBlock] = reinterpret_cast<const uint8_t*>(*block++ + offset);
    }
  }
  // Register tiles; inlined into their callers they would spill.
  template <int R, int C>
  [[gnu::noinline]] void ScoreTile(const Blocks& keys, int vector, int unit,
                                   int column);
  template <int R, int C>
  [[gnu::noinline]] void AccumulateTile(const Blocks& values, int vector,
                                        int unit, int column);

  AttentionState& state_;
  const int head_dim_;
  const int padded_dim_;
  int8_t* q_;         // [vectors, padded_dim]
  float* q_scale_;    // [vectors]
  int32_t* q_start_;  // [vectors], what dots with offset codes lack
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
  const int first_unit = number * batch.count - batch.first;
  const int panels = (tokens_ + kBlock - 1) / kBlock;
  state_.ForHeads(batch, [&](int head, int vector, int count) {
    Blocks keys;
    FindBlocks(state_.KeysOffset(head), keys);
    ForTiles(count, panels * (kBlock / kLanes),
             [&]<int R, int C>(int row, int column) {
               const int v = vector + row;
               ScoreTile<R, C>(keys, v, first_unit + v, column);
             });
  });
}

template <int R, int C>
void Int8Cache::ScoreTile(const Blocks& keys, int vector, int unit,
                          int column) {
  const int quads = (head_dim_ + kQuad - 1) / kQuad;
  const int64_t stride = padded_dim_;
  const int8_t* q = q_ + vector * stride;
  const uint8_t* codes[C];
  const uint8_t* scales_at[C];
  Repeat<C>([&]<int c>() __attribute__((always_inline)) {
    const int token = (column + c) * kLanes;
    const uint8_t* block = keys[token / kBlock];
    codes[c] = block + token % kBlock * kQuad;
    scales_at[c] =
        block + state_.work().code_bytes + token % kBlock * int{sizeof(float)};
  });
  I32 acc[R][C];
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    Repeat<C>([&]<int c>()
                  __attribute__((always_inline)) { acc[r][c] = SetInt(0); });
  });
  const int part = (quads + 3) / 4;
  for (int first = 0; first < quads; first += part) {
    const int end = first + part < quads ? first + part : quads;
    state_.prefetch().Issue();
#pragma GCC unroll 4
    for (int k = first; k < end; ++k) {
      Bytes loaded[C];
      Repeat<C>([&]<int c>() __attribute__((always_inline)) {
        loaded[c] = LoadBytes(codes[c] + k * kBlock * kQuad);
      });
      Repeat<R>([&]<int r>() __attribute__((always_inline)) {
        const int32_t quad = QuadAt(q + r * stride + k * kQuad);
        Repeat<C>([&]<int c>() __attribute__((always_inline)) {
          acc[r][c] = AddDotSigned(acc[r][c], loaded[c], quad);
        });
      });
    }
  }
  F32 scales[C];
  Repeat<C>([&]<int c>() __attribute__((always_inline)) {
    scales[c] = Load(reinterpret_cast<const float*>(scales_at[c]));
  });
  const float* const q_scale = q_scale_ + vector;
  const int32_t* const q_start = q_start_ + vector;
  float* const p = state_.scores(unit) + column * kLanes;
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    const F32 scale = Set(q_scale[r]);
    const I32 start = SetInt(q_start[r]);
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      const F32 dot = ToFloat(Add(acc[r][c], start));
      Store(p + r * kAttentionTile + c * kLanes,
            Mul(dot, Mul(scale, scales[c])));
    });
  });
}

inline void Int8Cache::PrepareWeights(const VectorBatch& batch) {
  for (int t = 0, unit = 0; t < batch.tiles; ++t, unit += batch.count) {
    const int tile = batch.tile + t * kAttentionTile;
    const int first_unit = unit - batch.first;
    state_.ForHeads(batch, [&](int head, int vector, int count) {
      alignas(64) float scales[kAttentionTile];
      const int last = vector + count - 1 - batch.first;
      LoadScales(tile, head, state_.Visible(batch, last), scales);
      for (int v = vector; v < vector + count; ++v) {
        weights_.Scale(first_unit + v, scales,
                       state_.Visible(batch, v - batch.first),
                       state_.scores(first_unit + v));
      }
    });
  }
  weights_.Quantize(batch.units(), state_.scores(0), &state_.prefetch());
}

// Scales of V in a tile, zero for tokens that no vector sees.
inline void Int8Cache::LoadScales(int tile, int head, int visible,
                                  float* scales) const {
  for (int j = 0; j < kAttentionTile; j += kLanes) {
    F32 scale = Set(0.0f);
    if (j < visible) {
      const float* from = ScalesOf(state_.Values(tile + j, head)) + j % kBlock;
      scale = KeepFirst(Load(from), visible - j, 0.0f);
    }
    Store(scales + j, scale);
  }
}

inline void Int8Cache::AccumulateValues(const VectorBatch& batch, int number) {
  const int first_unit = number * batch.count - batch.first;
  state_.ForHeads(batch, [&](int head, int vector, int count) {
    Blocks values;
    FindBlocks(state_.ValuesOffset(head), values);
    ForTiles(count, padded_dim_ / kLanes,
             [&]<int R, int C>(int row, int column) {
               const int v = vector + row;
               AccumulateTile<R, C>(values, v, first_unit + v, column);
             });
  });
}

// The last vector of a row of V reaches beyond it, at most into the scales.
template <int R, int C>
void Int8Cache::AccumulateTile(const Blocks& values, int vector, int unit,
                               int column) {
  I32 acc[R][C];
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    Repeat<C>([&]<int c>()
                  __attribute__((always_inline)) { acc[r][c] = SetInt(0); });
  });
  const int64_t quad_bytes = int64_t{head_dim_} * kQuad;
  const uint8_t* u = weights_.codes(unit);
  for (int j = 0; j < tokens_; j += kBlock, u += kBlock) {
    const uint8_t* codes = values[j / kBlock] + column * kLanes * kQuad;
    state_.prefetch().Issue();
#pragma GCC unroll 4
    for (int k = 0; k < kBlock; k += kQuad, codes += quad_bytes) {
      Bytes loaded[C];
      Repeat<C>([&]<int c>() __attribute__((always_inline)) {
        loaded[c] = LoadBytes(codes + c * kLanes * kQuad);
      });
      Repeat<R>([&]<int r>() __attribute__((always_inline)) {
        const int32_t quad = QuadAt(u + r * kAttentionTile + k);
        Repeat<C>([&]<int c>() __attribute__((always_inline)) {
          acc[r][c] = AddDotUnsigned(acc[r][c], loaded[c], quad);
        });
      });
    }
  }
  const int64_t stride = padded_dim_;
  float* const out = state_.out(vector) + column * kLanes;
  const float* const scales = weights_.scales(unit);
  const float* const rescales = state_.rescales(unit);
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    const F32 scale = Set(scales[r]);
    const F32 rescale = Set(rescales[r]);
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      float* const at = out + r * stride + c * kLanes;
      Store(at, Fma(ToFloat(acc[r][c]), scale, Mul(Load(at), rescale)));
    });
  });
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_INT8_ATTENTION_INL_H_
