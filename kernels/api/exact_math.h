#ifndef BATON_KERNELS_API_EXACT_MATH_H_
#define BATON_KERNELS_API_EXACT_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace baton::kernels {

// Elementary functions of numerics class exact-v1, fp32: made of std::fma and
// IEEE +, -, ·, / alone, so that every compiler, instruction set and host gives
// the same bits. Requires round to nearest even, no FTZ or DAZ. NaN in, NaN
// out. Errors in ulp of the result, measured against libm in double precision.

namespace exact {

// exp(x) = 2^n · P(r), n = rne(x · log2 e), r = x - n · ln 2 (Cody-Waite in two
// parts), |r| <= ln 2 / 2, P of degree 7 (Cephes expf).
inline constexpr float kExpLow = -104.0f;  // exp rounds to 0 here and below
inline constexpr float kExpHigh = 89.0f;   // exp overflows here and above
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e43p-1f;
inline constexpr float kLn2Low = -0x1.05c61p-29f;
inline constexpr float kRoundMagic = 0x1.8p+23f;  // x + it - it = rne(x)
inline constexpr float kExpPolynomial[] = {       // r^7 down to r^0
    1.9875691500e-4f,
    1.3981999507e-3f,
    8.3334519073e-3f,
    4.1665795894e-2f,
    1.6666665459e-1f,
    5.0000001201e-1f,
    1.0f,
    1.0f};

// 2^x = 2^n · P(r), n = rne(x), r = x - n exactly, |r| <= 1/2, P of degree 6,
// minimax with P(0) = 1.
inline constexpr float kExp2Low = -150.0f;    // 2^x rounds to 0 here and below
inline constexpr float kExp2Polynomial[] = {  // r^6 down to r^0
    0x1.416b5cp-13f,
    0x1.5f083p-10f,
    0x1.3b2de0p-7f,
    0x1.c6af7cp-5f,
    0x1.ebfbdcp-3f,
    0x1.62e430p-1f,
    1.0f};

inline float PowerOfTwo(uint32_t exponent) {  // -126..127, else meaningless
  return std::bit_cast<float>((exponent + 127) << 23);
}

// p · 2^n for p in [1/2, 2] and rounded = n + kRoundMagic; denormal results are
// rounded once.
inline float ScaleByPowerOfTwo(float p, float rounded) {
  const auto exponent = static_cast<int32_t>(
      std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(kRoundMagic));
  const int32_t half = exponent >> 1;
  const float scaled = p * PowerOfTwo(static_cast<uint32_t>(half));
  return scaled * PowerOfTwo(static_cast<uint32_t>(exponent) -
                             static_cast<uint32_t>(half));
}

}  // namespace exact

// Error < 1.1 ulp; denormal results are rounded once more. Exp(-inf) = 0.
inline float Exp(float x) {
  using namespace exact;
  x = x < kExpLow ? kExpLow : x;
  x = x > kExpHigh ? kExpHigh : x;
  const float shifted = std::fma(x, kLog2E, kRoundMagic);
  const float n = shifted - kRoundMagic;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = kExpPolynomial[0];
#pragma GCC unroll 8  // lets loops over Exp become vectors
  for (int i = 1; i < 8; ++i) p = std::fma(p, r, kExpPolynomial[i]);
  return ScaleByPowerOfTwo(p, shifted);
}

// 2^x for x < 128. Error < 0.8 ulp; denormal results are rounded once more.
// Exp2(-inf) = 0.
inline float Exp2(float x) {
  using namespace exact;
  x = x < kExp2Low ? kExp2Low : x;
  const float rounded = x + kRoundMagic;
  const float r = x - (rounded - kRoundMagic);
  float p = kExp2Polynomial[0];
  for (int i = 1; i < 7; ++i) p = std::fma(p, r, kExp2Polynomial[i]);
  return ScaleByPowerOfTwo(p, rounded);
}

// Error < 1 ulp (fdlibm logf). Log(±0) = -inf, Log(x < 0) = NaN.
inline float Log(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (bits > 0x7f800000u || bits == 0) {
    return x == 0.0f ? -HUGE_VALF : (x < 0.0f ? NAN : x + x);
  }
  if (bits == 0x7f800000u) return x;
  int32_t exponent = 0;
  if (bits < 0x00800000u) {
    bits = std::bit_cast<uint32_t>(x * 0x1p23f);
    exponent = -23;
  }
  // m in [sqrt(1/2), sqrt(2)): subtract the exponent of x / sqrt(1/2).
  const int32_t shift = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  exponent += shift;
  const float f =
      std::bit_cast<float>(bits - (static_cast<uint32_t>(shift) << 23)) - 1.0f;
  const float n = static_cast<float>(exponent);
  const float s = f / (2.0f + f);
  const float z = s * s;
  const float w = z * z;
  const float t1 = w * std::fma(w, 0.24279078841f, 0.40000972152f);
  const float t2 = z * std::fma(w, 0.28498786688f, 0.66666662693f);
  const float half_square = 0.5f * f * f;
  const float tail =
      std::fma(n, 9.0580006145e-6f, s * (half_square + (t2 + t1)));
  return n * 6.9313812256e-1f - ((half_square - tail) - f);
}

// x / (1 + exp(-x)). Error < 2.5 ulp where the result is normal.
inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_EXACT_MATH_H_
