#ifndef BATON_KERNELS_CPU_SIMD_LINEAR_INL_H_
#define BATON_KERNELS_CPU_SIMD_LINEAR_INL_H_

#include "kernels/cpu/simd/fma_chain-inl.h"
#include "kernels/cpu/simd/quantized_tile-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

template <typename T>
inline void FloatLinear(const LinearWork& work) {
  const PanelView<T> weights = {
      reinterpret_cast<const T*>(work.panel), kPanelOutputs,
      static_cast<int64_t>(work.panel_bytes / sizeof(T))};
  const int vectors = work.panels * (kPanelOutputs / kLanes);
  ForTiles(work.rows, vectors, [&]<int R, int C>(int row, int vector) {
    F32 acc[R][C];
    for (auto& line : acc) {
      for (F32& value : line) value = Set(0.0f);
    }
    FmaChain<R, C>(work.x + row * work.cols, work.cols, weights, vector, 0,
                   work.cols, acc);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) {
        StoreOutputs(work, row + r, (vector + c) * kLanes, acc[r][c]);
      }
    }
  });
}

// The tile of `rows` <= R rows.
template <TensorType kType, int R, int C>
inline void TileOfRows(int rows, const LinearWork& work, int row, int output,
                       const Prefetch& prefetch) {
  if constexpr (R > 1) {
    if (rows < R) {
      return TileOfRows<kType, R - 1, C>(rows, work, row, output, prefetch);
    }
  }
  QuantizedTile<kType, R, C>(work, row, output, prefetch);
}

// C vectors of outputs for all rows, cut into tiles of nearly equal size: 7
// rows are 4 + 3, not 6 + 1. Each tile fetches its share of the panels after
// these, so that memory is never idle.
template <TensorType kType, int C>
inline void QuantizedColumns(const LinearWork& work, int output) {
  constexpr int kRows = kTileRows<PanelFormatOf(kType).bits>;
  const int64_t groups = work.cols / kActivationGroup;
  const int tiles = (work.rows + kRows - 1) / kRows;
  const auto bytes =
      static_cast<int64_t>(work.panel_bytes) * C * kLanes / kPanelOutputs;
  const std::byte* next =
      work.panel + output * work.panel_bytes / kPanelOutputs + bytes;
  const int64_t share = (bytes + tiles * groups - 1) / (tiles * groups);
  for (int tile = 0, row = 0; tile < tiles; ++tile) {
    const int rows = (work.rows - row) / (tiles - tile);
    TileOfRows<kType, kRows, C>(rows, work, row, output,
                                {next + tile * groups * share, share});
    row += rows;
  }
}

template <TensorType kType>
inline void QuantizedLinear(const LinearWork& work) {
  constexpr int kStep = kTileColumns * kLanes;
  const int end = kPanelOutputs * work.panels;
  int output = 0;
  for (; output + kStep <= end; output += kStep) {
    QuantizedColumns<kType, kTileColumns>(work, output);
  }
  for (; output < end; output += kLanes) {
    QuantizedColumns<kType, 1>(work, output);
  }
}

inline void Linear(const LinearWork& work) {
  switch (work.type) {
    case TensorType::kF32:
      return FloatLinear<float>(work);
    case TensorType::kF16:
      return FloatLinear<F16>(work);
    case TensorType::kBF16:
      return FloatLinear<Bf16>(work);
    case TensorType::kQ8_0:
      return QuantizedLinear<TensorType::kQ8_0>(work);
    case TensorType::kQ4_0:
      return QuantizedLinear<TensorType::kQ4_0>(work);
    case TensorType::kQ4_1:
      return QuantizedLinear<TensorType::kQ4_1>(work);
    case TensorType::kQ5_0:
      return QuantizedLinear<TensorType::kQ5_0>(work);
    case TensorType::kQ5_1:
      return QuantizedLinear<TensorType::kQ5_1>(work);
    case TensorType::kQ4_K:
      return QuantizedLinear<TensorType::kQ4_K>(work);
    case TensorType::kQ5_K:
      return QuantizedLinear<TensorType::kQ5_K>(work);
    case TensorType::kQ6_K:
      return QuantizedLinear<TensorType::kQ6_K>(work);
    case TensorType::kI8:
      return QuantizedLinear<TensorType::kI8>(work);
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_LINEAR_INL_H_
