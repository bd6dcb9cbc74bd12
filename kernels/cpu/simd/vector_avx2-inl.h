#ifndef BATON_KERNELS_CPU_SIMD_VECTOR_AVX2_INL_H_
#define BATON_KERNELS_CPU_SIMD_VECTOR_AVX2_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/api/exact_math.h"

// Eight lanes; AVX2, FMA and F16C. The vocabulary of vector_scalar-inl.h.
namespace baton::kernels::cpu::BATON_ISA {

constexpr int kLanes = 8;
constexpr int kChainColumns = 2;

struct F32 {
  __m256 v;
};
struct I32 {
  __m256i v;
};
struct Bytes {
  __m256i v;
};
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

inline __m256i FirstMask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m128i Load128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

inline F32 Set(float x) { return {_mm256_set1_ps(x)}; }
inline F32 Load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline F32 Load(const F16* p) { return {_mm256_cvtph_ps(Load128(p))}; }
inline F32 Load(const Bf16* p) {
  return {_mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(Load128(p)), 16))};
}
inline void Store(float* p, F32 a) { _mm256_storeu_ps(p, a.v); }
inline void Store(F16* p, F32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
inline F32 LoadFirst(const float* p, int n) {
  return {_mm256_maskload_ps(p, FirstMask(n))};
}
inline void StoreFirst(float* p, F32 a, int n) {
  _mm256_maskstore_ps(p, FirstMask(n), a.v);
}
inline F32 KeepFirst(F32 a, int n, float fill) {
  return {_mm256_blendv_ps(_mm256_set1_ps(fill), a.v,
                           _mm256_castsi256_ps(FirstMask(n)))};
}

inline F32 Add(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32 Sub(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32 Mul(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32 Div(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F32 Fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 NegFma(F32 a, F32 b, F32 c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}
inline F32 Max(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F32 Min(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline float ReduceMax(F32 a) {
  __m128 m =
      _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

inline float SquareRoot(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

inline F32 RoundToWhole(F32 x, F32* shifted) {
  const F32 magic = Set(exact::kRoundMagic);
  *shifted = Add(x, magic);
  return Sub(*shifted, magic);
}
inline F32 ScaleByPowerOfTwo(F32 p, F32 /*n*/, F32 shifted) {
  const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(shifted.v),
                                     _mm256_set1_epi32(0x4b400000));
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256i rest = _mm256_sub_epi32(n, half);
  const __m256i bias = _mm256_set1_epi32(127);
  const auto power = [bias](__m256i e) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(e, bias), 23));
  };
  return {_mm256_mul_ps(_mm256_mul_ps(p.v, power(half)), power(rest))};
}

inline float SumStripes(const F32 (&stripes)[2]) {
  const __m256 by8 = _mm256_add_ps(stripes[0].v, stripes[1].v);
  const __m128 by4 =
      _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

inline F32 ToFloat(I32 a) { return {_mm256_cvtepi32_ps(a.v)}; }
inline I32 LoadUnsigned(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
inline I32 LoadSigned(const uint8_t* p) {
  return {_mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
inline I32 AbsBits(F32 a) {
  return {_mm256_and_si256(_mm256_castps_si256(a.v),
                           _mm256_set1_epi32(0x7fffffff))};
}
inline I32 Max(I32 a, I32 b) { return {_mm256_max_epi32(a.v, b.v)}; }
inline int32_t ReduceMax(I32 a) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a.v),
                            _mm256_extracti128_si256(a.v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}
inline void StoreInt8(int8_t* p, F32 a) {
  const __m256i wide = _mm256_cvtps_epi32(a.v);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                        _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(words, words));
}
inline int32_t Sum16(const int8_t* p) {
  const __m128i shifted = _mm_xor_si128(Load128(p), _mm_set1_epi8(-128));
  const __m128i sums = _mm_sad_epu8(shifted, _mm_setzero_si128());
  return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

inline Bytes LoadBytes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
inline Bytes And(Bytes a, uint8_t mask) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi8(static_cast<char>(mask)))};
}
inline Bytes Join(Bytes low, uint8_t low_mask, Bytes high, uint8_t high_mask) {
  return {_mm256_or_si256(And(low, low_mask).v, And(high, high_mask).v)};
}
template <int n>
inline Bytes Shift(Bytes a) {
  if constexpr (n >= 0) {
    return {_mm256_slli_epi16(a.v, n)};
  } else {
    return {_mm256_srli_epi16(a.v, -n)};
  }
}

constexpr int kRowsReduced = 4;
inline void ReduceMaxRows(const F32 (&rows)[kRowsReduced], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) out[r] = ReduceMax(rows[r]);
}
inline void ReduceMaxRows(const I32 (&rows)[kRowsReduced], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) {
    out[r] = __builtin_bit_cast(float, ReduceMax(rows[r]));
  }
}
inline void SumStripesRows(const F32 (*stripes)[2], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) out[r] = SumStripes(stripes[r]);
}

inline I32 SetInt(int32_t x) { return {_mm256_set1_epi32(x)}; }
inline I32 Add(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline void StoreUint8(uint8_t* p, F32 a) {
  const __m256i wide = _mm256_cvtps_epi32(a.v);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                        _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(words, words));
}

inline F32 HadamardLanes(F32 a, int block) {
  if (block > 1) {
    const __m256 other = _mm256_permute_ps(a.v, 0xb1);
    a.v = _mm256_blend_ps(_mm256_add_ps(other, a.v), _mm256_sub_ps(other, a.v),
                          0xaa);
  }
  if (block > 2) {
    const __m256 other = _mm256_permute_ps(a.v, 0x4e);
    a.v = _mm256_blend_ps(_mm256_add_ps(other, a.v), _mm256_sub_ps(other, a.v),
                          0xcc);
  }
  if (block > 4) {
    const __m256 other = _mm256_permute2f128_ps(a.v, a.v, 0x01);
    a.v = _mm256_blend_ps(_mm256_add_ps(other, a.v), _mm256_sub_ps(other, a.v),
                          0xf0);
  }
  return a;
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_VECTOR_AVX2_INL_H_
