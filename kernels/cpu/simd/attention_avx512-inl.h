#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_AVX512_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_AVX512_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/vector_avx512-inl.h"

// What attention asks of vectors beside vector_avx512-inl.h.
namespace baton::kernels::cpu::BATON_ISA {

// Four rows fold together: halves, quarters, then inside the quarters, which
// is also the tree of SumStripes.
constexpr int kRowsReduced = 4;
template <typename Fold>
inline __m128 FoldRows(__m512 a, __m512 b, __m512 c, __m512 d, Fold fold) {
  const __m512 ab =
      fold(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  const __m512 cd =
      fold(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
  const __m512 abcd = fold(_mm512_shuffle_f32x4(ab, cd, 0x88),
                           _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 by2 = fold(abcd, _mm512_permute_ps(abcd, 0x4e));
  const __m512 by1 = fold(by2, _mm512_permute_ps(by2, 0xb1));
  const __m512i first =
      _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(first, by1));
}
inline void ReduceMaxRows(const F32 (&rows)[kRowsReduced], float* out) {
  const auto fold = [](__m512 a, __m512 b) { return _mm512_max_ps(a, b); };
  _mm_storeu_ps(out,
                FoldRows(rows[0].v, rows[1].v, rows[2].v, rows[3].v, fold));
}
inline void ReduceMaxRows(const I32 (&rows)[kRowsReduced], float* out) {
  const auto fold = [](__m512 a, __m512 b) {
    return _mm512_castsi512_ps(
        _mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  };
  _mm_storeu_ps(out, FoldRows(_mm512_castsi512_ps(rows[0].v),
                              _mm512_castsi512_ps(rows[1].v),
                              _mm512_castsi512_ps(rows[2].v),
                              _mm512_castsi512_ps(rows[3].v), fold));
}
inline void SumStripesRows(const F32 (&stripes)[kRowsReduced][1], float* out) {
  const auto fold = [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); };
  _mm_storeu_ps(out, FoldRows(stripes[0][0].v, stripes[1][0].v, stripes[2][0].v,
                              stripes[3][0].v, fold));
}

// Adds the other lane of a pair; the upper lane of it subtracts itself.
inline F32 AddPairs(F32 a, __m512 other, __mmask16 upper) {
  return {_mm512_mask_sub_ps(_mm512_add_ps(other, a.v), upper, other, a.v)};
}
inline F32 HadamardLanes(F32 a, int block) {
  if (block > 1) a = AddPairs(a, _mm512_permute_ps(a.v, 0xb1), 0xaaaa);
  if (block > 2) a = AddPairs(a, _mm512_permute_ps(a.v, 0x4e), 0xcccc);
  if (block > 4) {
    a = AddPairs(a, _mm512_shuffle_f32x4(a.v, a.v, 0xb1), 0xf0f0);
  }
  if (block > 8) {
    a = AddPairs(a, _mm512_shuffle_f32x4(a.v, a.v, 0x4e), 0xff00);
  }
  return a;
}

inline I32 SetInt(int32_t x) { return {_mm512_set1_epi32(x)}; }
constexpr int32_t SignedDotStart(int32_t sum) { return -128 * sum; }
// As assembly: for the intrinsic, GCC 12 copies and spills the accumulators of
// a register tile around every step.
inline __m512i AddDot(__m512i acc, __m512i unsigned_bytes,
                      __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0"
      : "+v"(acc)
      : "v"(unsigned_bytes), "v"(signed_bytes));
  return acc;
}
inline I32 AddDotSigned(I32 acc, Bytes codes, int32_t quad) {
  return {AddDot(acc.v, codes.v, _mm512_set1_epi32(quad))};
}
inline I32 AddDotUnsigned(I32 acc, Bytes codes, int32_t quad) {
  return {AddDot(acc.v, _mm512_set1_epi32(quad), codes.v)};
}
inline void StoreUint8(uint8_t* p, F32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_ATTENTION_AVX512_INL_H_
