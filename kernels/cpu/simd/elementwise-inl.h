#ifndef BATON_KERNELS_CPU_SIMD_ELEMENTWISE_INL_H_
#define BATON_KERNELS_CPU_SIMD_ELEMENTWISE_INL_H_

#include "kernels/api/exact_math.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/repeat-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

constexpr int kStripes = 16;
constexpr int kStripeVectors = kStripes / kLanes;
constexpr int32_t kTinyMaximumBits = (127 - 100) << 23;  // 2^-100
constexpr int32_t kInfinityBits = 0xff << 23;

inline F32 Exp(F32 x) {
  using namespace exact;
  x = Min(Set(kExpHigh), Max(Set(kExpLow), x));
  const F32 shifted = Fma(x, Set(kLog2E), Set(kRoundMagic));
  const F32 n = Sub(shifted, Set(kRoundMagic));
  const F32 r = Fma(n, Set(-kLn2Low), Fma(n, Set(-kLn2High), x));
  F32 p = Set(kExpPolynomial[0]);
  for (int i = 1; i < 8; ++i) p = Fma(p, r, Set(kExpPolynomial[i]));
  return ScaleByPowerOfTwo(p, n, shifted);
}

// x = Exp2(x), step by step over all of them.
template <int n>
[[gnu::always_inline]] inline void Exp2Each(F32 (&x)[n]) {
  using namespace exact;
  F32 shifted[n], whole[n], p[n];
  Repeat<n>([&]<int i>() __attribute__((always_inline)) {
    x[i] = Max(Set(kExp2Low), x[i]);
    whole[i] = RoundToWhole(x[i], &shifted[i]);
    x[i] = Sub(x[i], whole[i]);
    p[i] = Set(kExp2Polynomial[0]);
  });
  Repeat<6>([&]<int k>() __attribute__((always_inline)) {
    Repeat<n>([&]<int i>() __attribute__((always_inline)) {
      p[i] = Fma(p[i], x[i], Set(kExp2Polynomial[k + 1]));
    });
  });
  Repeat<n>([&]<int i>() __attribute__((always_inline)) {
    x[i] = ScaleByPowerOfTwo(p[i], whole[i], shifted[i]);
  });
}
inline F32 Exp2(F32 x) {
  F32 one[] = {x};
  Exp2Each(one);
  return one[0];
}

// Calls step(stripe vector, offset, lanes) over n elements so that element i
// belongs to lane i % 16 of the stripes.
template <typename Step>
inline void ForStripes(int n, Step step) {
  int i = 0;
  for (; i + kStripes <= n; i += kStripes) {
    for (int s = 0; s < kStripeVectors; ++s) step(s, i + s * kLanes, kLanes);
  }
  for (int s = 0; i < n; ++s, i += kLanes) {
    step(s, i, n - i < kLanes ? n - i : kLanes);
  }
}

inline void QuantizeGroup(const float* x, ActivationGroup* out) {
  I32 maximum_bits = AbsBits(Load(x));
  for (int i = kLanes; i < kActivationGroup; i += kLanes) {
    maximum_bits = Max(maximum_bits, AbsBits(Load(x + i)));
  }
  const int32_t bits = ReduceMax(maximum_bits);
  if (bits < kTinyMaximumBits || bits >= kInfinityBits) {
    *out = {};
    out->scale = bits < kTinyMaximumBits ? 0.0f : __builtin_nanf("");
    out->scaled_sum = out->scale;
    return;
  }
  const float maximum = __builtin_bit_cast(float, bits);
  const F32 inverse = Set(127.0f / maximum);
  for (int i = 0; i < kActivationGroup; i += kLanes) {
    StoreInt8(out->q + i, Mul(Load(x + i), inverse));
  }
  const int32_t first = Sum16(out->q);
  const int32_t last = Sum16(out->q + 16);
  out->scale = maximum / 127.0f;
  out->scaled_sum = out->scale * static_cast<float>(first + last);
  out->minus_8_sum = -8 * (first + last);
  out->minus_16_sum = -16 * (first + last);
  out->minus_128_sum = -128 * (first + last);
  out->minus_32_half_sum[0] = -32 * first;
  out->minus_32_half_sum[1] = -32 * last;
}

inline void QuantizeRow(const float* x, int64_t cols, ActivationGroup* out) {
  for (int64_t k = 0; k < cols; k += kActivationGroup) {
    QuantizeGroup(x + k, out++);
  }
}

inline void RmsNormRow(const float* x, const float* weight, int width,
                       float eps, float* out) {
  F32 stripes[kStripeVectors];
  for (F32& stripe : stripes) stripe = Set(0.0f);
  ForStripes(width, [&](int s, int i, int lanes) {
    const F32 v = lanes == kLanes ? Load(x + i) : LoadFirst(x + i, lanes);
    stripes[s] = Fma(v, v, stripes[s]);
  });
  const float mean = SumStripes(stripes) / static_cast<float>(width);
  const F32 inverse = Set(1.0f / SquareRoot(mean + eps));
  int i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    Store(out + i, Mul(Mul(Load(x + i), inverse), Load(weight + i)));
  }
  if (i < width) {
    const F32 v = Mul(LoadFirst(x + i, width - i), inverse);
    StoreFirst(out + i, Mul(v, LoadFirst(weight + i, width - i)), width - i);
  }
}

inline F32 Silu(F32 x) {
  return Div(x, Add(Set(1.0f), Exp(Sub(Set(-0.0f), x))));
}

inline void SiluMul(const float* gate, const float* up, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(out + i, Mul(Silu(Load(gate + i)), Load(up + i)));
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const F32 activated = Silu(LoadFirst(gate + i, rest));
    StoreFirst(out + i, Mul(activated, LoadFirst(up + i, rest)), rest);
  }
}

inline void RoundToF16(const float* x, int n, uint16_t* out) {
  auto* to = reinterpret_cast<F16*>(out);
  for (int i = 0; i < n; i += kLanes) {
    const bool whole = i + kLanes <= n;
    const F32 v = whole ? Load(x + i) : LoadFirst(x + i, n - i);
    const F32 saturated = Max(Set(-65504.0f), Min(Set(65504.0f), v));
    if (whole) {
      Store(to + i, saturated);
    } else {
      F16 rest[kLanes];
      Store(rest, saturated);
      for (int j = 0; j < n - i; ++j) to[i + j] = rest[j];
    }
  }
}

inline bool FiniteRow(const float* x, int n) {
  I32 bits = AbsBits(Set(0.0f));
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) bits = Max(bits, AbsBits(Load(x + i)));
  if (i < n) bits = Max(bits, AbsBits(LoadFirst(x + i, n - i)));
  return ReduceMax(bits) < kInfinityBits;
}

inline MaximumAndSum MaxAndExpSum(const float* x, int n) {
  constexpr float kLowest = -__builtin_inff();
  F32 maxima = Set(kLowest);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) maxima = Max(maxima, Load(x + i));
  if (i < n) {
    maxima = Max(maxima, KeepFirst(LoadFirst(x + i, n - i), n - i, kLowest));
  }
  const float maximum = ReduceMax(maxima);
  F32 stripes[kStripeVectors];
  for (F32& stripe : stripes) stripe = Set(0.0f);
  ForStripes(n, [&](int s, int at, int lanes) {
    const F32 v = lanes == kLanes ? Load(x + at) : LoadFirst(x + at, lanes);
    const F32 term = Exp(Sub(v, Set(maximum)));
    stripes[s] =
        Add(stripes[s], lanes == kLanes ? term : KeepFirst(term, lanes, 0.0f));
  });
  return {maximum, SumStripes(stripes)};
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ELEMENTWISE_INL_H_
