#ifndef BATON_KERNELS_CPU_SIMD_FMA_CHAIN_INL_H_
#define BATON_KERNELS_CPU_SIMD_FMA_CHAIN_INL_H_

#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/repeat-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

// Panels of 16 columns: element (k, c) of panel p at
// data[p · panel_stride + k · k_stride + c].
template <typename T>
struct PanelView {
  const T* data;
  int64_t k_stride;
  int64_t panel_stride;

  const T* vector(int v) const {
    constexpr int kPerPanel = kPanelOutputs / kLanes;
    return data + v / kPerPanel * panel_stride + v % kPerPanel * kLanes;
  }
};

// acc[r][c] = fma(a[r][k], b[k][c], acc[r][c]) for k = from..to-1 in order,
// over R rows and C vectors of columns, vector c of row k at columns[c] +
// k · k_stride.
template <int R, int C, typename T>
inline void FmaColumns(const float* a, int64_t a_stride,
                       const T* const (&columns)[C], int64_t k_stride,
                       int64_t from, int64_t to, F32 (&acc)[R][C]) {
  for (int64_t k = from; k < to; ++k) {
    F32 loaded[C];
    Repeat<C>([&]<int c>() __attribute__((always_inline)) {
      loaded[c] = Load(columns[c] + k * k_stride);
    });
    Repeat<R>([&]<int r>() __attribute__((always_inline)) {
      const F32 x = Set(a[r * a_stride + k]);
      Repeat<C>([&]<int c>() __attribute__((always_inline)) {
        acc[r][c] = Fma(x, loaded[c], acc[r][c]);
      });
    });
  }
}

// The same over vectors first_vector.. of a PanelView, or of another view with
// its k_stride and vector(v).
template <int R, int C, typename View>
inline void FmaChain(const float* a, int64_t a_stride, const View& b,
                     int first_vector, int64_t from, int64_t to,
                     F32 (&acc)[R][C]) {
  decltype(b.vector(0)) columns[C];
  Repeat<C>([&]<int c>() __attribute__((always_inline)) {
    columns[c] = b.vector(first_vector + c);
  });
  FmaColumns<R, C>(a, a_stride, columns, b.k_stride, from, to, acc);
}

// Calls tile<R, C>(row, vector) so that the tiles cover rows x vectors.
template <int R, typename Tile>
inline void ForVectors(int row, int vectors, Tile tile) {
  int v = 0;
  for (; v + kChainColumns <= vectors; v += kChainColumns) {
    tile.template operator()<R, kChainColumns>(row, v);
  }
  for (; v < vectors; ++v) tile.template operator()<R, 1>(row, v);
}

template <typename Tile>
inline void ForTiles(int rows, int vectors, Tile tile) {
  int row = 0;
  for (; row + 4 <= rows; row += 4) ForVectors<4>(row, vectors, tile);
  switch (rows - row) {
    case 3:
      return ForVectors<3>(row, vectors, tile);
    case 2:
      return ForVectors<2>(row, vectors, tile);
    case 1:
      return ForVectors<1>(row, vectors, tile);
    default:
      return;
  }
}

// As ForTiles, but with tiles of 8 rows and half as many vectors where there
// are registers for them: half the loads of b, for a b that is converted.
template <typename Tile>
inline void ForTallTiles(int rows, int vectors, Tile tile) {
  int row = 0;
  if constexpr (kLanes == 16) {
    constexpr int kColumns = kChainColumns / 2;
    for (; row + 8 <= rows; row += 8) {
      int v = 0;
      for (; v + kColumns <= vectors; v += kColumns) {
        tile.template operator()<8, kColumns>(row, v);
      }
      for (; v < vectors; ++v) tile.template operator()<8, 1>(row, v);
    }
  }
  ForTiles(rows - row, vectors, [&]<int R, int C>(int r, int v) {
    tile.template operator()<R, C>(row + r, v);
  });
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_FMA_CHAIN_INL_H_
