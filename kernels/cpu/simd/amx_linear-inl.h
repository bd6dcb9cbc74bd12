#ifndef BATON_KERNELS_CPU_SIMD_AMX_LINEAR_INL_H_
#define BATON_KERNELS_CPU_SIMD_AMX_LINEAR_INL_H_

#include "kernels/cpu/simd/quantized_tile-inl.h"

// Quantised products of 16 rows x 16 outputs by int8 tiles: one tile product
// per group of 32 inputs (two of 16 for Q6_K), then scale and add in vectors,
// which bounds the speed: 16 rows of a group take about 36 cycles of loads,
// conversions and FMAs, the tile unit 16. So products are issued some groups
// ahead of their use, and codes are unpacked once for 96 rows.
//
// Tiles: Tiles(depth) prepares the thread for products of `depth` inputs until
// it is destroyed. Multiply<slot>(a, stride, b, c) sets
//   c[r · 16 + o] = Σ_k a[r · stride + k] · b[k / 4 · 64 + 4 · o + k % 4];
// products with different slots, of kTileSlots, are independent.
namespace baton::kernels::cpu::BATON_ISA {

constexpr int kTileSide = 16;
constexpr int kTileSlots = 4;
constexpr int kTilesAhead = 3;
constexpr int kTileChunk = 16;  // groups unpacked at a time: 8 KiB
constexpr int kTileBlocks = 6;  // blocks of 16 rows that share them
constexpr int kPanelVectors = kPanelOutputs / kLanes;

// Group codes as signed bytes, quads of 16 outputs.
template <TensorType kType, int kQuad = 0>
inline void UnpackGroup(const uint8_t* codes, int8_t* out) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  for (int v = 0; v < kPanelVectors; ++v) {
    const Bytes unpacked =
        LoadQuad<kFormat.bits, kQuad>(codes + 4 * kLanes * v);
    StoreBytes(out + 64 * kQuad + 4 * kLanes * v,
               Sub(unpacked, static_cast<uint8_t>(kFormat.offset)));
  }
  if constexpr (kQuad < 7) UnpackGroup<kType, kQuad + 1>(codes, out);
}

template <TensorType kType, typename Tiles>
class TileLinear {
 public:
  // work.rows: a multiple of 16.
  explicit TileLinear(const LinearWork& work)
      : work_(work), groups_(work.cols / kActivationGroup) {}

  void Run() {
    constexpr int kRows = kTileBlocks * kTileSide;
    for (int panel = 0; panel < work_.panels; ++panel) {
      for (int v = 0; v < kPanelVectors; ++v) {
        panels_[v] =
            QuantizedPanel<kType>(work_, panel * kPanelOutputs + v * kLanes);
      }
      for (int row = 0; row < work_.rows; row += kRows) {
        const int rows = work_.rows - row;
        RunBlocks(panel, row, (rows < kRows ? rows : kRows) / kTileSide);
      }
    }
  }

 private:
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  static constexpr int kParts = kFormat.sub_scales && !kFormat.minimum ? 2 : 1;
  static constexpr int kDepth = kActivationGroup / kParts;
  static constexpr int kCodeBytes = kActivationGroup * kPanelOutputs;
  using Block = F32[kTileSide][kPanelVectors];

  void RunBlocks(int panel, int row, int blocks) {
    Block acc[kTileBlocks];
    for (Block& block : acc) {
      for (auto& line : block) {
        for (F32& value : line) value = Set(0.0f);
      }
    }
    for (int64_t g = 0; g < groups_; g += kTileChunk) {
      const int count =
          static_cast<int>(groups_ - g < kTileChunk ? groups_ - g : kTileChunk);
      for (int i = 0; i < count; ++i) {
        UnpackGroup<kType>(panels_[0].codes + (g + i) * kFormat.code_bytes(),
                           codes_ + i * kCodeBytes);
      }
      for (int b = 0; b < blocks; ++b) {
        AddGroups(row + b * kTileSide, g, count, acc[b]);
      }
    }
    for (int r = 0; r < blocks * kTileSide; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) {
        F32 product = acc[r / kTileSide][r % kTileSide][v];
        if constexpr (kFormat.output_scales) {
          product = Mul(Load(reinterpret_cast<const float*>(panels_[v].scales)),
                        product);
        }
        StoreOutputs(work_, row + r, panel * kPanelOutputs + v * kLanes,
                     product);
      }
    }
  }

  void AddGroups(int row, int64_t first, int count, Block& block) {
    const ActivationGroup* x = work_.activations + row * groups_ + first;
    Block acc;  // in registers, hence the unrolling
#pragma GCC unroll 16
    for (int r = 0; r < kTileSide; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) acc[r][v] = block[r][v];
    }
    Multiply<0>(x, 0, count);
    Multiply<1>(x, 1, count);
    Multiply<2>(x, 2, count);
    for (int i = 0; i < count; i += kTileSlots) {
      Step<0>(x, first, i, count, acc);
      Step<1>(x, first, i + 1, count, acc);
      Step<2>(x, first, i + 2, count, acc);
      Step<3>(x, first, i + 3, count, acc);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileSide; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) block[r][v] = acc[r][v];
    }
  }

  template <int kSlot>
  void Step(const ActivationGroup* x, int64_t first, int i, int count,
            Block& acc) {
    if (i >= count) return;
    Multiply<(kSlot + kTilesAhead) % kTileSlots>(x, i + kTilesAhead, count);
    for (int v = 0; v < kPanelVectors; ++v) {
      const GroupScales<kType> scales(panels_[v], first + i);
      const ActivationGroup* row = x + i;
#pragma GCC unroll 16
      for (int r = 0; r < kTileSide; ++r, row += groups_) {
        const int at = r * kPanelOutputs + v * kLanes;
        F32 dot = ToFloat(Load(dots_[kSlot][0] + at));
        if constexpr (kParts == 2) {
          const uint8_t* sub =
              panels_[v].sub_scales + (first + i) * kFormat.sub_scale_bytes();
          dot = Fma(ToFloat(LoadSigned(sub + 16)),
                    ToFloat(Load(dots_[kSlot][1] + at)),
                    Mul(ToFloat(LoadSigned(sub)), dot));
        }
        acc[r][v] = scales.AddTo(acc[r][v], dot, *row);
      }
    }
  }

  template <int kSlot>
  void Multiply(const ActivationGroup* x, int i, int count) {
    if (i >= count) return;
    for (int part = 0; part < kParts; ++part) {
      tiles_.template Multiply<kSlot>(
          x[i].q + part * kDepth,
          groups_ * static_cast<int64_t>(sizeof(ActivationGroup)),
          codes_ + i * kCodeBytes + part * kDepth * kPanelOutputs,
          dots_[kSlot][part]);
    }
  }

  const LinearWork& work_;
  const int64_t groups_;
  const Tiles tiles_{kDepth};
  QuantizedPanel<kType> panels_[kPanelVectors];
  alignas(64) int8_t codes_[kTileChunk * kCodeBytes];
  alignas(64) int32_t dots_[kTileSlots][kParts][kTileSide * kPanelOutputs];
};

// Whole blocks of 16 rows of a quantised product by tiles; the rest, and float
// types, by `rest`.
template <typename Tiles>
inline void LinearByTiles(const LinearWork& work,
                          void (*rest)(const LinearWork&)) {
  if (work.activations == nullptr || work.rows < kTileSide) return rest(work);
  LinearWork whole = work;
  whole.rows = work.rows / kTileSide * kTileSide;
  switch (work.type) {
    case TensorType::kQ8_0:
      TileLinear<TensorType::kQ8_0, Tiles>(whole).Run();
      break;
    case TensorType::kQ4_0:
      TileLinear<TensorType::kQ4_0, Tiles>(whole).Run();
      break;
    case TensorType::kQ4_1:
      TileLinear<TensorType::kQ4_1, Tiles>(whole).Run();
      break;
    case TensorType::kQ5_0:
      TileLinear<TensorType::kQ5_0, Tiles>(whole).Run();
      break;
    case TensorType::kQ5_1:
      TileLinear<TensorType::kQ5_1, Tiles>(whole).Run();
      break;
    case TensorType::kQ4_K:
      TileLinear<TensorType::kQ4_K, Tiles>(whole).Run();
      break;
    case TensorType::kQ5_K:
      TileLinear<TensorType::kQ5_K, Tiles>(whole).Run();
      break;
    case TensorType::kQ6_K:
      TileLinear<TensorType::kQ6_K, Tiles>(whole).Run();
      break;
    case TensorType::kI8:
      TileLinear<TensorType::kI8, Tiles>(whole).Run();
      break;
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return rest(work);
  }
  if (whole.rows == work.rows) return;
  LinearWork last = work;
  last.rows = work.rows - whole.rows;
  last.activations += whole.rows * (work.cols / kActivationGroup);
  last.out += whole.rows * work.out_stride;
  rest(last);
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_AMX_LINEAR_INL_H_
