#ifndef BATON_KERNELS_CPU_SIMD_QUANTIZED_TILE_INL_H_
#define BATON_KERNELS_CPU_SIMD_QUANTIZED_TILE_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_format.h"

// The register tile of quantised weights: R rows x C vectors of outputs.
namespace baton::kernels::cpu::BATON_ISA {

inline void StoreOutputs(const LinearWork& work, int row, int output,
                         F32 product) {
  const int lanes = work.outputs - output;
  if (lanes <= 0) return;
  float* out = work.out + row * work.out_stride + output;
  if (lanes >= kLanes) {
    Store(out, work.accumulate ? Add(Load(out), product) : product);
  } else {
    if (work.accumulate) product = Add(LoadFirst(out, lanes), product);
    StoreFirst(out, product, lanes);
  }
}

template <int kBits, int kQuad>
inline Bytes LoadQuad(const uint8_t* codes) {
  if constexpr (kBits == 8) {
    return LoadBytes(codes + 64 * kQuad);
  } else {
    const Bytes packed = LoadBytes(codes + 64 * (kQuad % 4));
    const Bytes low = kQuad < 4 ? packed : Shift<-4>(packed);
    if constexpr (kBits == 4) {
      return And(low, 0x0f);
    } else if constexpr (kBits == 5) {
      const Bytes high = LoadBytes(codes + 256);
      return Join(low, 0x0f, Shift<4 - kQuad>(high), 0x10);
    } else {
      const Bytes high = LoadBytes(codes + 256 + 64 * (kQuad / 4));
      return Join(low, 0x0f, Shift<4 - 2 * (kQuad % 4)>(high), 0x30);
    }
  }
}

// The sections of the panel that holds `output`, seen from there.
template <TensorType kType>
struct QuantizedPanel {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);

  QuantizedPanel() = default;
  QuantizedPanel(const LinearWork& work, int output) {
    const int lane = output % kPanelOutputs;
    const int64_t groups = work.cols / kActivationGroup;
    const auto* panel = reinterpret_cast<const uint8_t*>(
        work.panel + output / kPanelOutputs * work.panel_bytes);
    codes = panel + 4 * lane;
    panel += groups * kFormat.code_bytes();
    sub_scales = panel + lane;
    panel += groups * kFormat.sub_scale_bytes();
    scales = panel + (kFormat.output_scales ? 4 : 2) * lane;
  }

  const uint8_t* codes;
  const uint8_t* sub_scales;
  const uint8_t* scales;
};

// The factors of one group in exact-v1 point 3.
template <TensorType kType>
struct GroupScales {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);

  GroupScales(const QuantizedPanel<kType>& panel, int64_t g) {
    const uint8_t* scales =
        panel.scales + g / kFormat.block_groups() * kFormat.scale_bytes();
    if constexpr (!kFormat.output_scales) {
      scale = Load(reinterpret_cast<const F16*>(scales));
    }
    if constexpr (kFormat.minimum) {
      minimum = Load(reinterpret_cast<const F16*>(scales + 32));
    }
    if constexpr (kFormat.sub_scales && kFormat.minimum) {
      const uint8_t* sub = panel.sub_scales + g * kFormat.sub_scale_bytes();
      scale = Mul(scale, ToFloat(LoadUnsigned(sub)));
      minimum = Mul(minimum, ToFloat(LoadUnsigned(sub + 16)));
    }
  }

  F32 AddTo(F32 acc, F32 dot, const ActivationGroup& x) const {
    if constexpr (kFormat.output_scales) return Fma(dot, Set(x.scale), acc);
    acc = Fma(dot, Mul(scale, Set(x.scale)), acc);
    if constexpr (kFormat.minimum && kFormat.sub_scales) {
      acc = NegFma(minimum, Set(x.scaled_sum), acc);
    } else if constexpr (kFormat.minimum) {
      acc = Fma(minimum, Set(x.scaled_sum), acc);
    }
    return acc;
  }

  F32 scale;
  F32 minimum;
};

template <int kOffset>
inline const int32_t* OffsetStart(const ActivationGroup& x, int half) {
  static_assert(kOffset == 0 || kOffset == 8 || kOffset == 16 ||
                kOffset == 32 || kOffset == 128);
  if constexpr (kOffset == 32) return &x.minus_32_half_sum[half];
  if constexpr (kOffset == 16) return &x.minus_16_sum;
  return kOffset == 128 ? &x.minus_128_sum : &x.minus_8_sum;
}

// dots[r][c] += quad kQuad and on, up to kEnd, of group g. Quad by quad, so
// that R · C chains are in flight and each code lives in a register briefly.
template <TensorType kType, int kQuad, int kEnd, int R, int C, int kBits>
inline void AddQuads(const QuantizedPanel<kType> (&panels)[C], int64_t g,
                     const ActivationGroup* x, int64_t stride,
                     DotSum<kBits> (&dots)[R][C]) {
  Code<kBits> codes[C];
  for (int c = 0; c < C; ++c) {
    codes[c] = MakeCode<kBits>(LoadQuad<kBits, kQuad>(
        panels[c].codes + g * PanelFormatOf(kType).code_bytes()));
  }
  for (int r = 0; r < R; ++r) {
    const Quad quad = LoadActivations(x[r * stride].q + 4 * kQuad);
    for (int c = 0; c < C; ++c) AddQuad<kQuad>(codes[c], quad, &dots[r][c]);
  }
  if constexpr (kQuad + 1 < kEnd) {
    AddQuads<kType, kQuad + 1, kEnd>(panels, g, x, stride, dots);
  }
}

// take(r, c, dot) with each exact dot product of quads kQuad..kEnd-1.
template <TensorType kType, int R, int kQuad, int kEnd, int C, typename Take>
inline void DotProducts(const QuantizedPanel<kType> (&panels)[C], int64_t g,
                        const ActivationGroup* x, int64_t stride, Take take) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  constexpr bool kOffset = kFormat.offset != 0;
  const auto start = [&](int r) {
    return OffsetStart<kFormat.offset>(x[r * stride], kQuad / 4);
  };
  DotSum<kFormat.bits> sums[R][C];
  for (int r = 0; r < R; ++r) {
    for (auto& sum : sums[r]) sum = StartDot<kFormat.bits, kOffset>(start(r));
  }
  AddQuads<kType, kQuad, kEnd>(panels, g, x, stride, sums);
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      take(r, c, ToFloat(FinishDot<kOffset>(sums[r][c], start(r))));
    }
  }
}

// dots[r][c]: group g's int32 dot products as floats. Those of Q6_K,
// sc0 · d0 + sc1 · d1, stay below 2^24: fp32 holds them exactly.
template <TensorType kType, int R, int C>
inline void GroupDots(const QuantizedPanel<kType> (&panels)[C], int64_t g,
                      const ActivationGroup* x, int64_t stride,
                      F32 (&dots)[R][C]) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  if constexpr (kFormat.sub_scales && !kFormat.minimum) {
    const auto scale = [&](int c, int half) {
      return ToFloat(LoadSigned(panels[c].sub_scales +
                                g * kFormat.sub_scale_bytes() + 16 * half));
    };
    DotProducts<kType, R, 0, 4>(
        panels, g, x, stride,
        [&](int r, int c, F32 dot) { dots[r][c] = Mul(scale(c, 0), dot); });
    DotProducts<kType, R, 4, 8>(
        panels, g, x, stride, [&](int r, int c, F32 dot) {
          dots[r][c] = Fma(scale(c, 1), dot, dots[r][c]);
        });
  } else {
    DotProducts<kType, R, 0, 8>(
        panels, g, x, stride, [&](int r, int c, F32 dot) { dots[r][c] = dot; });
  }
}

// What a tile fetches for later, some bytes per group: panels are too short for
// the hardware to learn their streams.
struct Prefetch {
  const std::byte* from;
  int64_t bytes_per_group;

  void Group(int64_t g) const {
    const std::byte* start = from + g * bytes_per_group;
    for (int64_t at = 0; at < bytes_per_group; at += 64) {
      __builtin_prefetch(start + at);
    }
  }
};

// Rows row..row+R-1 times the C vectors of outputs from `output` on.
template <TensorType kType, int R, int C>
[[gnu::noinline]] void QuantizedTile(const LinearWork& work, int row,
                                     int output, const Prefetch& prefetch) {
  const int64_t groups = work.cols / kActivationGroup;
  const ActivationGroup* x = work.activations + row * groups;
  QuantizedPanel<kType> panels[C];
  F32 acc[R][C];
  for (int c = 0; c < C; ++c) {
    panels[c] = QuantizedPanel<kType>(work, output + c * kLanes);
    for (int r = 0; r < R; ++r) acc[r][c] = Set(0.0f);
  }
  for (int64_t g = 0; g < groups; ++g) {
    prefetch.Group(g);
    F32 dots[R][C];
    GroupDots<kType>(panels, g, x + g, groups, dots);
    for (int c = 0; c < C; ++c) {
      const GroupScales<kType> scales(panels[c], g);
      for (int r = 0; r < R; ++r) {
        acc[r][c] = scales.AddTo(acc[r][c], dots[r][c], x[r * groups + g]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      if constexpr (PanelFormatOf(kType).output_scales) {
        const auto* scales = reinterpret_cast<const float*>(panels[c].scales);
        acc[r][c] = Mul(Load(scales), acc[r][c]);
      }
      StoreOutputs(work, row + r, output + c * kLanes, acc[r][c]);
    }
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_QUANTIZED_TILE_INL_H_
