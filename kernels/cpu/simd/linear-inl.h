#ifndef BATON_KERNELS_CPU_SIMD_LINEAR_INL_H_
#define BATON_KERNELS_CPU_SIMD_LINEAR_INL_H_

#include "kernels/cpu/panel_format.h"
#include "kernels/cpu/simd/fma_chain-inl.h"

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

template <int kBits, int kQuad>
inline Bytes LoadQuad(const uint8_t* codes) {
  if constexpr (kBits == 8) {
    return LoadBytes(codes + 64 * kQuad);
  } else {
    const Bytes packed = LoadBytes(codes + 64 * (kQuad % 4));
    const Bytes low = And(kQuad < 4 ? packed : Shift<-4>(packed), 0x0f);
    if constexpr (kBits == 4) {
      return low;
    } else if constexpr (kBits == 5) {
      const Bytes high = LoadBytes(codes + 256);
      return Or(low, And(Shift<4 - kQuad>(high), 0x10));
    } else {
      const Bytes high = LoadBytes(codes + 256 + 64 * (kQuad / 4));
      return Or(low, And(Shift<4 - 2 * (kQuad % 4)>(high), 0x30));
    }
  }
}

template <int kBits>
inline void LoadCodes(const uint8_t* codes, Bytes (&quads)[8]) {
  quads[0] = LoadQuad<kBits, 0>(codes);
  quads[1] = LoadQuad<kBits, 1>(codes);
  quads[2] = LoadQuad<kBits, 2>(codes);
  quads[3] = LoadQuad<kBits, 3>(codes);
  quads[4] = LoadQuad<kBits, 4>(codes);
  quads[5] = LoadQuad<kBits, 5>(codes);
  quads[6] = LoadQuad<kBits, 6>(codes);
  quads[7] = LoadQuad<kBits, 7>(codes);
}

// One panel's sections, seen from its first `kLanes` outputs at `lane`.
template <TensorType kType>
struct QuantizedPanel {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);

  QuantizedPanel(const std::byte* panel, int64_t groups, int lane)
      : codes(reinterpret_cast<const uint8_t*>(panel) + 4 * lane),
        sub_scales(reinterpret_cast<const uint8_t*>(panel) +
                   groups * kFormat.code_bytes() + lane),
        scales(reinterpret_cast<const uint8_t*>(panel) +
               groups * (kFormat.code_bytes() + kFormat.sub_scale_bytes()) +
               (kFormat.output_scales ? 4 : 2) * lane) {}

  const uint8_t* codes;
  const uint8_t* sub_scales;
  const uint8_t* scales;
};

// The weights of one group: codes and the factors of exact-v1 point 3.
template <TensorType kType>
struct GroupWeights {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);

  GroupWeights(const QuantizedPanel<kType>& panel, int64_t g) {
    LoadCodes<kFormat.bits>(panel.codes + g * kFormat.code_bytes(), quads);
    const uint8_t* scales =
        panel.scales + g / kFormat.block_groups() * kFormat.scale_bytes();
    if constexpr (!kFormat.output_scales) {
      scale = Load(reinterpret_cast<const F16*>(scales));
    }
    if constexpr (kFormat.minimum) {
      minimum = Load(reinterpret_cast<const F16*>(scales + 32));
    }
    if constexpr (kFormat.sub_scales) {
      const uint8_t* sub = panel.sub_scales + g * kFormat.sub_scale_bytes();
      if constexpr (kFormat.minimum) {
        scale = Mul(scale, ToFloat(LoadUnsigned(sub)));
        minimum = Mul(minimum, ToFloat(LoadUnsigned(sub + 16)));
      } else {
        half_scale[0] = LoadSigned(sub);
        half_scale[1] = LoadSigned(sub + 16);
      }
    }
  }

  I32 DotWith(const ActivationGroup& x) const {
    constexpr int kBits = kFormat.bits;
    if constexpr (kFormat.sub_scales && !kFormat.minimum) {
      const I32 first = Dot<kBits, 4>(
          quads, x.q, DotStart<kBits>(kFormat.offset, x.half_sum[0]));
      const I32 last = Dot<kBits, 4>(
          quads + 4, x.q + 16, DotStart<kBits>(kFormat.offset, x.half_sum[1]));
      return Add(Mul(half_scale[0], first), Mul(half_scale[1], last));
    } else if constexpr (kFormat.offset != 0) {
      return Dot<kBits, 8>(
          quads, x.q,
          DotStart<kBits>(kFormat.offset, x.half_sum[0] + x.half_sum[1]));
    } else {
      return Dot<kBits, 8>(quads, x.q, 0);
    }
  }

  F32 AddTo(F32 acc, const ActivationGroup& x) const {
    if constexpr (kFormat.output_scales) {
      return Fma(ToFloat(DotWith(x)), Set(x.scale), acc);
    }
    acc = Fma(ToFloat(DotWith(x)), Mul(scale, Set(x.scale)), acc);
    if constexpr (kFormat.minimum && kFormat.sub_scales) {
      acc = NegFma(minimum, Set(x.scaled_sum), acc);
    } else if constexpr (kFormat.minimum) {
      acc = Fma(minimum, Set(x.scaled_sum), acc);
    }
    return acc;
  }

  Bytes quads[8];
  F32 scale;
  F32 minimum;
  I32 half_scale[2];
};

// Fetches what the next panel holds where this one holds group g: panels are
// too short for the hardware to learn their streams.
template <TensorType kType>
inline void PrefetchGroup(const std::byte* next_panel, int64_t g) {
  constexpr int kBytes =
      static_cast<int>(PanelFormatOf(kType).panel_bytes(8) / 8);
  for (int line = 0; line < kBytes; line += 64) {
    __builtin_prefetch(next_panel + g * kBytes + line);
  }
}

// `next_panel`: what to prefetch meanwhile, or null.
template <TensorType kType, int R>
inline void QuantizedTile(const LinearWork& work,
                          const QuantizedPanel<kType>& panel, int row,
                          int output, const std::byte* next_panel) {
  const int64_t groups = work.cols / kActivationGroup;
  const ActivationGroup* x = work.activations + row * groups;
  F32 acc[R];
  for (F32& value : acc) value = Set(0.0f);
  for (int64_t g = 0; g < groups; ++g) {
    if (next_panel != nullptr) PrefetchGroup<kType>(next_panel, g);
    const GroupWeights<kType> weights(panel, g);
    for (int r = 0; r < R; ++r) {
      acc[r] = weights.AddTo(acc[r], x[r * groups + g]);
    }
  }
  if constexpr (PanelFormatOf(kType).output_scales) {
    const F32 scale = Load(reinterpret_cast<const float*>(panel.scales));
    for (int r = 0; r < R; ++r) acc[r] = Mul(scale, acc[r]);
  }
  for (int r = 0; r < R; ++r) StoreOutputs(work, row + r, output, acc[r]);
}

template <int R>
struct Rows {};

template <TensorType kType>
inline void QuantizedLinear(const LinearWork& work) {
  const int64_t groups = work.cols / kActivationGroup;
  for (int output = 0; output < kPanelOutputs * work.panels; output += kLanes) {
    const int lane = output % kPanelOutputs;
    const std::byte* start =
        work.panel + output / kPanelOutputs * work.panel_bytes;
    const QuantizedPanel<kType> panel(start, groups, lane);
    const std::byte* next = lane == 0 ? start + work.panel_bytes : nullptr;
    int row = 0;
    const auto tile = [&]<int R>(Rows<R>) {
      QuantizedTile<kType, R>(work, panel, row, output, next);
      next = nullptr;
      row += R;
    };
    while (row + kMaxRows <= work.rows) tile(Rows<kMaxRows>());
    while (row + 4 <= work.rows) tile(Rows<4>());
    while (row + 2 <= work.rows) tile(Rows<2>());
    if (row < work.rows) tile(Rows<1>());
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
