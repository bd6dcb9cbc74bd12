#ifndef BATON_KERNELS_CPU_SIMD_VECTOR_AVX512_INL_H_
#define BATON_KERNELS_CPU_SIMD_VECTOR_AVX512_INL_H_

#include <immintrin.h>

#include <cstdint>

// Sixteen lanes; AVX-512 F, BW, DQ, VL and VNNI. The vocabulary of
// vector_scalar-inl.h.
namespace baton::kernels::cpu::BATON_ISA {

constexpr int kLanes = 16;
constexpr int kChainColumns = 4;

struct F32 {
  __m512 v;
};
struct I32 {
  __m512i v;
};
struct Bytes {
  __m512i v;
};
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

inline __mmask16 FirstMask(int n) {
  return n >= 16 ? __mmask16{0xffff}
                 : static_cast<__mmask16>((1u << (n > 0 ? n : 0)) - 1);
}
inline __m128i Load128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline __m256i Load256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline F32 Set(float x) { return {_mm512_set1_ps(x)}; }
inline F32 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline F32 Load(const F16* p) { return {_mm512_cvtph_ps(Load256(p))}; }
inline F32 Load(const Bf16* p) {
  return {_mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(Load256(p)), 16))};
}
inline void Store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline void Store(F16* p, F32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
inline F32 LoadFirst(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(FirstMask(n), p)};
}
inline void StoreFirst(float* p, F32 a, int n) {
  _mm512_mask_storeu_ps(p, FirstMask(n), a.v);
}
inline F32 KeepFirst(F32 a, int n, float fill) {
  return {_mm512_mask_blend_ps(FirstMask(n), _mm512_set1_ps(fill), a.v)};
}

inline F32 Add(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 Sub(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 Mul(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 Div(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 Fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 NegFma(F32 a, F32 b, F32 c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
inline F32 Max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 Min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline float ReduceMax(F32 a) { return _mm512_reduce_max_ps(a.v); }

inline float SquareRoot(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

inline F32 RoundToWhole(F32 x, F32* /*shifted*/) {
  return {_mm512_roundscale_ps(x.v, 0)};
}
inline F32 ScaleByPowerOfTwo(F32 p, F32 n, F32 /*shifted*/) {
  return {_mm512_scalef_ps(p.v, n.v)};
}

inline float SumStripes(const F32 (&stripes)[1]) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(stripes[0].v),
                                   _mm512_extractf32x8_ps(stripes[0].v, 1));
  const __m128 by4 =
      _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

inline F32 ToFloat(I32 a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline I32 Load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline I32 LoadUnsigned(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(Load128(p))};
}
inline I32 LoadSigned(const uint8_t* p) {
  return {_mm512_cvtepi8_epi32(Load128(p))};
}
inline I32 AbsBits(F32 a) {
  return {_mm512_and_si512(_mm512_castps_si512(a.v),
                           _mm512_set1_epi32(0x7fffffff))};
}
inline I32 Max(I32 a, I32 b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline int32_t ReduceMax(I32 a) { return _mm512_reduce_max_epi32(a.v); }
inline void StoreInt8(int8_t* p, F32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a.v)));
}
inline int32_t Sum16(const int8_t* p) {
  const __m128i shifted = _mm_xor_si128(Load128(p), _mm_set1_epi8(-128));
  const __m128i sums = _mm_sad_epu8(shifted, _mm_setzero_si128());
  return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

inline Bytes LoadBytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline void StoreBytes(int8_t* p, Bytes a) { _mm512_storeu_si512(p, a.v); }
inline Bytes Sub(Bytes a, uint8_t b) {
  return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(static_cast<char>(b)))};
}
inline Bytes And(Bytes a, uint8_t mask) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(static_cast<char>(mask)))};
}
// low & low_mask | high & high_mask; low_mask | high_mask = 2^n - 1.
inline Bytes Join(Bytes low, uint8_t low_mask, Bytes high, uint8_t high_mask) {
  constexpr int kSelect = 0xca;  // first ? second : third
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(low_mask));
  return And({_mm512_ternarylogic_epi32(mask, low.v, high.v, kSelect)},
             low_mask | high_mask);
}
template <int n>
inline Bytes Shift(Bytes a) {
  if constexpr (n >= 0) {
    return {_mm512_slli_epi16(a.v, n)};
  } else {
    return {_mm512_srli_epi16(a.v, -n)};
  }
}

using DotVector = __m512i;
inline DotVector BroadcastInt(int32_t x) { return _mm512_set1_epi32(x); }
inline DotVector AddDotBytes(DotVector sum, DotVector unsigned_bytes,
                             DotVector signed_bytes) {
  return _mm512_dpbusd_epi32(sum, unsigned_bytes, signed_bytes);
}

// The quantised register tile. Zen 5 does 2 vpdpbusd, mul or FMA and 2 loads a
// cycle, beside conversions and logic. A row of Q4_1 takes 8 + 1 + 2 of the
// first per group and panel (8 / 11 of the peak at best), and 8 + 2 loads, too
// many; two panels share the loads of activations: 8 / 2 + 2. 6 x 2 sums and
// accumulators leave 8 registers.
constexpr int kTileColumns = 2;
template <int kBits>
constexpr int kTileRows = 6;

}  // namespace baton::kernels::cpu::BATON_ISA

// Written in the vocabulary above.
#include "kernels/cpu/simd/dot_vnni-inl.h"

#endif  // BATON_KERNELS_CPU_SIMD_VECTOR_AVX512_INL_H_
