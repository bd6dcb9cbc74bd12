#ifndef BATON_KERNELS_CPU_SIMD_ATTENTION_AVX512_INL_H_
#define BATON_KERNELS_CPU_SIMD_ATTENTION_AVX512_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/vector_avx512-inl.h"

// What attention asks of vectors beside vector_avx512-inl.h.
namespace baton::kernels::cpu::BATON_ISA {

// Sixteen rows fold together: halves, quarters, then inside the quarters, which
// is also the tree of SumStripes. Lane r of the result is row r.
constexpr int kRowsReduced = 16;
template <typename Fold>
inline __m512 FoldHalves(__m512 a, __m512 b, Fold fold) {
  return fold(_mm512_shuffle_f32x4(a, b, 0x44),
              _mm512_shuffle_f32x4(a, b, 0xee));
}
template <typename Fold>
inline __m512 FoldFour(const __m512* rows, Fold fold) {
  const __m512 ab = FoldHalves(rows[0], rows[1], fold);
  const __m512 cd = FoldHalves(rows[2], rows[3], fold);
  return fold(_mm512_shuffle_f32x4(ab, cd, 0x88),
              _mm512_shuffle_f32x4(ab, cd, 0xdd));
}
template <typename Fold>
inline __m512 FoldEight(const __m512* rows, Fold fold) {
  const __m512 a = FoldFour(rows, fold), b = FoldFour(rows + 4, fold);
  return fold(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}
template <typename Fold>
inline __m512 FoldRows(const __m512* rows, Fold fold) {
  const __m512 a = FoldEight(rows, fold), b = FoldEight(rows + 8, fold);
  const __m512 sums =
      fold(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  const __m512i transposed =
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_ps(transposed, sums);
}
inline void ReduceMaxRows(const F32 (&rows)[kRowsReduced], float* out) {
  const auto fold = [](__m512 a, __m512 b) { return _mm512_max_ps(a, b); };
  _mm512_storeu_ps(out, FoldRows(&rows[0].v, fold));
}
// Bits of floats that are not negative are ordered as the floats, and order
// NaNs too.
inline void ReduceMaxRows(const I32 (&rows)[kRowsReduced], float* out) {
  const auto fold = [](__m512 a, __m512 b) {
    return _mm512_castsi512_ps(
        _mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  };
  __m512 bits[kRowsReduced];
  for (int i = 0; i < kRowsReduced; ++i) {
    bits[i] = _mm512_castsi512_ps(rows[i].v);
  }
  _mm512_storeu_ps(out, FoldRows(bits, fold));
}
inline void SumStripesRows(const F32 (*stripes)[1], float* out) {
  const auto fold = [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); };
  _mm512_storeu_ps(out, FoldRows(&stripes[0][0].v, fold));
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
inline I32 Add(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
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
