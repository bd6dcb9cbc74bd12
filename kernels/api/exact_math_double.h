#ifndef BATON_KERNELS_API_EXACT_MATH_DOUBLE_H_
#define BATON_KERNELS_API_EXACT_MATH_DOUBLE_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace baton::kernels {

// The double-precision companions of exact_math.h, for values that are computed
// once and then rounded to fp32 (RoPE tables): same bits everywhere, made of
// std::fma and IEEE arithmetic alone. NaN in, NaN out.

// Error < 1 ulp. Cody-Waite, then the Taylor polynomial of degree 13.
inline double Exp(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  constexpr double kMagic = 0x1.8p+52;
  const double shifted = std::fma(x, 0x1.71547652b82fep+0, kMagic);
  const double n = shifted - kMagic;
  const double r = std::fma(n, -0x1.abc9e3b39803fp-56,
                            std::fma(n, -0x1.62e42fefa39efp-1, x));
  constexpr double kInverseFactorial[] = {1.0 / 6227020800,
                                          1.0 / 479001600,
                                          1.0 / 39916800,
                                          1.0 / 3628800,
                                          1.0 / 362880,
                                          1.0 / 40320,
                                          1.0 / 5040,
                                          1.0 / 720,
                                          1.0 / 120,
                                          1.0 / 24,
                                          1.0 / 6,
                                          0.5,
                                          1.0,
                                          1.0};
  double p = kInverseFactorial[0];
  for (int i = 1; i < 14; ++i) p = std::fma(p, r, kInverseFactorial[i]);
  const auto exponent = static_cast<int64_t>(std::bit_cast<uint64_t>(shifted) -
                                             std::bit_cast<uint64_t>(kMagic));
  const int64_t half = exponent >> 1;
  const auto power = [](int64_t e) {
    return std::bit_cast<double>((static_cast<uint64_t>(e) + 1023) << 52);
  };
  return p * power(half) * power(exponent - half);
}

// Error < 1 ulp (fdlibm log). Requires x > 0, finite and normal.
inline double Log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t shift = static_cast<int64_t>(bits - 0x3fe6a09e667f3bcdu) >> 52;
  const double f =
      std::bit_cast<double>(bits - (static_cast<uint64_t>(shift) << 52)) - 1.0;
  const double n = static_cast<double>(shift);
  const double s = f / (2.0 + f);
  const double z = s * s;
  constexpr double kSeries[] = {
      1.479819860511658591e-01, 1.531383769920937332e-01,
      1.818357216161805012e-01, 2.222219843214978396e-01,
      2.857142874366239149e-01, 3.999999999940941908e-01,
      6.666666666666735130e-01};
  double p = kSeries[0];
  for (int i = 1; i < 7; ++i) p = std::fma(p, z, kSeries[i]);
  const double half_square = 0.5 * f * f;
  const double tail =
      std::fma(n, 1.90821492927058770002e-10, s * std::fma(p, z, half_square));
  return n * 6.93147180369123816490e-01 - ((half_square - tail) - f);
}

// base^y for base > 0, finite and normal. Error < 1 + 2 · |y · ln base| ulp.
inline double Pow(double base, double y) { return Exp(y * Log(base)); }

namespace exact {

struct QuarterTurns {
  double r;    // x - n · π/2, |r| <= π/4
  unsigned n;  // modulo 4
};

inline QuarterTurns ReduceQuarterTurns(double x) {
  constexpr double kMagic = 0x1.8p+52;
  const double shifted = std::fma(x, 0x1.45f306dc9c883p-1, kMagic);
  const double n = shifted - kMagic;
  double r = std::fma(n, -0x1.921fb54442d18p+0, x);
  r = std::fma(n, -0x1.1a62633145c07p-54, r);
  r = std::fma(n, 0x1.f1976b7ed8fbcp-110, r);
  return {r, static_cast<unsigned>(std::bit_cast<uint64_t>(shifted) & 3)};
}

inline double SinKernel(double r) {  // fdlibm __kernel_sin
  const double z = r * r;
  constexpr double kSeries[] = {
      1.58969099521155010221e-10, -2.50507602534068634195e-08,
      2.75573137070700676789e-06, -1.98412698298579493134e-04,
      8.33333333332248946124e-03, -1.66666666666666324348e-01};
  double p = kSeries[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, z, kSeries[i]);
  return std::fma(z * r, p, r);
}

inline double CosKernel(double r) {  // fdlibm __kernel_cos
  const double z = r * r;
  constexpr double kSeries[] = {
      -1.13596475577881948265e-11, 2.08757232129817482790e-09,
      -2.75573143513906633035e-07, 2.48015872894767294178e-05,
      -1.38888888888741095749e-03, 4.16666666666666019037e-02};
  double p = kSeries[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, z, kSeries[i]);
  const double half = 0.5 * z;
  const double w = 1.0 - half;
  return w + std::fma(z * z, p, (1.0 - w) - half);
}

}  // namespace exact

// Error < 1.6 ulp for |x| <= 2^30; no accuracy is promised beyond.
inline double Sin(double x) {
  const exact::QuarterTurns q = exact::ReduceQuarterTurns(x);
  const double value = q.n & 1 ? exact::CosKernel(q.r) : exact::SinKernel(q.r);
  return q.n & 2 ? -value : value;
}

inline double Cos(double x) {
  const exact::QuarterTurns q = exact::ReduceQuarterTurns(x);
  const double value = q.n & 1 ? exact::SinKernel(q.r) : exact::CosKernel(q.r);
  return (q.n + 1) & 2 ? -value : value;
}

// fp32 in and out, rounded from double: error < 0.501 ulp.
inline float Sin(float x) {
  return static_cast<float>(Sin(static_cast<double>(x)));
}
inline float Cos(float x) {
  return static_cast<float>(Cos(static_cast<double>(x)));
}

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_EXACT_MATH_DOUBLE_H_
