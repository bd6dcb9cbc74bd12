#ifndef BATON_KERNELS_CPU_SIMD_FLOAT_ATTENTION_INL_H_
#define BATON_KERNELS_CPU_SIMD_FLOAT_ATTENTION_INL_H_

#include "kernels/cpu/simd/attention_state-inl.h"
#include "kernels/cpu/simd/fma_chain-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// q·Kᵀ and p·V of a tile by FMA chains; T is F16 or float.
template <typename T>
class FloatCache {
 public:
  explicit FloatCache(AttentionState* state);

  // For every four vectors of a tile: in register tiles, then in the softmax.
  static constexpr int kPrefetchParts = 8 * kTileVectors / kChainColumns + 2;

  bool in_place() const { return in_place_; }
  void BeginTile(int tile, int tokens) {
    tile_ = tile;
    tokens_ = tokens;
  }
  // Of the tile begun; batches of other kv heads may not follow.
  void CopyTile(int head) {
    if (!in_place_) WidenTile(head);
  }
  // Of the tile begun, which is the one of this number in the batch.
  void Score(const VectorBatch& batch, int number);
  void PrepareWeights(const VectorBatch&) {}
  void AccumulateValues(const VectorBatch& batch, int number);

 private:
  // Few vectors convert F16 as they read it; more are served by one conversion
  // of the tile.
  static constexpr int kInPlaceVectors = 8;

  const T* KeysAt(int position, int head) const {
    return reinterpret_cast<const T*>(state_.Keys(position, head));
  }
  const T* ValuesAt(int position, int head) const {
    return reinterpret_cast<const T*>(state_.Values(position, head));
  }
  void WidenTile(int head);
  void WidenValues(const T* from, float* to) const;
  template <typename Tile>
  void ForRegisterTiles(int rows, int vectors, Tile tile) const;
  // Register tiles; inlined into their callers they would spill.
  template <int R, int C, typename Keys>
  [[gnu::noinline]] void ScoreTile(const Keys& keys, const float* q, int column,
                                   float* p) const;
  template <int R, int C>
  [[gnu::noinline]] void AccumulateTile(int head, int vector, int unit,
                                        int column, int from, int to);

  // A tile's K where it lies, as an operand of FmaChain.
  struct BlockKeys {
    const FloatCache* cache;
    int head;
    static constexpr int64_t k_stride = KvLayout::kTokens;

    const T* vector(int v) const {
      const int token = v * kLanes;
      return cache->KeysAt(cache->tile_ + token, head) +
             token % KvLayout::kTokens;
    }
  };

  AttentionState& state_;
  const int head_dim_;
  const int padded_dim_;
  const bool in_place_;
  float* k_tile_;  // [4 panels, head_dim, 16 tokens]
  float* v_tile_;  // [64 tokens, padded_dim]
  float* q_;       // [vectors, padded_dim], scaled
  int tile_ = 0;
  int tokens_ = 0;
};

template <typename T>
FloatCache<T>::FloatCache(AttentionState* state)
    : state_(*state),
      head_dim_(state->work().head_dim),
      padded_dim_(state->padded_dim()),
      in_place_((sizeof(T) == sizeof(float) ||
                 state->head_vectors() <= kInPlaceVectors) &&
                head_dim_ % kPanelOutputs == 0),
      k_tile_(state->Take(int64_t{kAttentionTile} * head_dim_)),
      v_tile_(state->Take(int64_t{kAttentionTile} * padded_dim_)),
      q_(state->Take(int64_t{state->vectors()} * padded_dim_)) {
  for (int v = 0; v < state->vectors(); ++v) {
    const float* from = state->Query(v);
    float* to = q_ + v * padded_dim_;
    for (int d = 0; d < head_dim_; ++d) to[d] = from[d] * state->work().scale;
  }
}

template <typename T>
void FloatCache<T>::WidenTile(int head) {
  for (int j = 0; j < tokens_; j += KvLayout::kTokens) {
    const T* k = KeysAt(tile_ + j, head);
    const T* v = ValuesAt(tile_ + j, head);
    const int elements = head_dim_ * KvLayout::kTokens;
    float* k_panel = k_tile_ + int64_t{j} * head_dim_;
    for (int i = 0; i < elements; i += kLanes) Store(k_panel + i, Load(k + i));
    const int rows =
        tokens_ - j < KvLayout::kTokens ? tokens_ - j : int{KvLayout::kTokens};
    for (int t = 0; t < rows; ++t) {
      WidenValues(v + t * head_dim_, v_tile_ + (j + t) * padded_dim_);
    }
  }
}

template <typename T>
void FloatCache<T>::WidenValues(const T* from, float* to) const {
  int d = 0;
  for (; d + kLanes <= head_dim_; d += kLanes) Store(to + d, Load(from + d));
  if (d < head_dim_) {
    T rest[kLanes] = {};
    for (int i = 0; d + i < head_dim_; ++i) rest[i] = from[d + i];
    Store(to + d, Load(rest));
    d += kLanes;
  }
  for (; d < padded_dim_; ++d) to[d] = 0.0f;
}

template <typename T>
template <typename Tile>
void FloatCache<T>::ForRegisterTiles(int rows, int vectors, Tile tile) const {
  if (in_place_ && sizeof(T) < sizeof(float)) {
    ForTallTiles(rows, vectors, tile);
  } else {
    ForTiles(rows, vectors, tile);
  }
}

template <typename T>
void FloatCache<T>::Score(const VectorBatch& batch, int number) {
  const int panels = (tokens_ + kPanelOutputs - 1) / kPanelOutputs;
  const int columns = panels * (kPanelOutputs / kLanes);
  const PanelView<float> copy = {k_tile_, KvLayout::kTokens,
                                 int64_t{KvLayout::kTokens} * head_dim_};
  const int first_unit = number * batch.count - batch.first;
  state_.ForHeads(batch, [&](int head, int vector, int count) {
    ForRegisterTiles(count, columns, [&]<int R, int C>(int row, int column) {
      const int v = vector + row;
      const float* q = q_ + v * padded_dim_;
      float* p = state_.scores(first_unit + v) + column * kLanes;
      if (in_place_) {
        ScoreTile<R, C>(BlockKeys{this, head}, q, column, p);
      } else {
        ScoreTile<R, C>(copy, q, column, p);
      }
    });
  });
}

template <typename T>
template <int R, int C, typename Keys>
void FloatCache<T>::ScoreTile(const Keys& keys, const float* q, int column,
                              float* p) const {
  decltype(keys.vector(0)) columns[C];
  F32 acc[R][C];
  Repeat<C>([&]<int c>() __attribute__((always_inline)) {
    columns[c] = keys.vector(column + c);
    Repeat<R>([&]<int r>()
                  __attribute__((always_inline)) { acc[r][c] = Set(0.0f); });
  });
  const int part = (head_dim_ + 3) / 4;
  for (int d = 0; d < head_dim_; d += part) {
    const int end = d + part < head_dim_ ? d + part : head_dim_;
    state_.prefetch().Issue();
    FmaColumns<R, C>(q, padded_dim_, columns, KvLayout::kTokens, d, end, acc);
  }
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      Store(p + r * kAttentionTile + c * kLanes, acc[r][c]);
    });
  });
}

template <typename T>
void FloatCache<T>::AccumulateValues(const VectorBatch& batch, int number) {
  const int first_unit = number * batch.count - batch.first;
  state_.ForHeads(batch, [&](int head, int vector, int count) {
    ForRegisterTiles(
        count, padded_dim_ / kLanes, [&]<int R, int C>(int row, int column) {
          const int v = vector + row;
          const int common = state_.VisibleTokens(v, tile_);
          AccumulateTile<R, C>(head, v, first_unit + v, column, 0, common);
          for (int r = 1; r < R; ++r) {
            const int visible = state_.VisibleTokens(v + r, tile_);
            if (visible > common) {
              AccumulateTile<1, C>(head, v + r, first_unit + v + r, column,
                                   common, visible);
            }
          }
        });
  });
}

// Tokens from..to - 1 of the tile; the first ones come after the rescaling.
template <typename T>
template <int R, int C>
void FloatCache<T>::AccumulateTile(int head, int vector, int unit, int column,
                                   int from, int to) {
  const int64_t stride = padded_dim_;
  float* out = state_.out(vector) + column * kLanes;
  F32 acc[R][C];
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    const F32 rescale = Set(from == 0 ? state_.rescale(unit + r) : 1.0f);
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      acc[r][c] = Mul(Load(out + r * stride + c * kLanes), rescale);
    });
  });
  const float* p = state_.scores(unit);
  if (in_place_) {
    while (from < to) {
      const int block = from / KvLayout::kTokens * KvLayout::kTokens;
      const int block_end = block + KvLayout::kTokens;
      const int end = block_end < to ? block_end : to;
      const PanelView<T> values = {ValuesAt(tile_ + block, head), head_dim_,
                                   kPanelOutputs};
      state_.prefetch().Issue();
      FmaChain<R, C>(p + block, kAttentionTile, values, column, from - block,
                     end - block, acc);
      from = end;
    }
  } else {
    for (int i = 0; i < 4; ++i) state_.prefetch().Issue();
    const PanelView<float> values = {v_tile_, padded_dim_, kPanelOutputs};
    FmaChain<R, C>(p, kAttentionTile, values, column, from, to, acc);
  }
  Repeat<R>([&]<int r>() __attribute__((always_inline)) {
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      Store(out + r * stride + c * kLanes, acc[r][c]);
    });
  });
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_FLOAT_ATTENTION_INL_H_
