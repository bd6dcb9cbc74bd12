#ifndef BATON_KERNELS_CPU_SIMD_DOT_MADDUBS_INL_H_
#define BATON_KERNELS_CPU_SIMD_DOT_MADDUBS_INL_H_

#include "kernels/cpu/simd/vector_avx2-inl.h"

// Dot products of vector_avx2-inl.h for machines without AVX-VNNI. Pair sums
// stay below 2^15, 2 · 127 · (2^kBits - 1) each, so that 8, 4 or 2 of them are
// added in int16. Codes of 8 bits become |w| times q with the sign of w
// (|w| <= 128: 2 · 128 · 127 < 2^15).
namespace baton::kernels::cpu::BATON_ISA {

using Quad = __m256i;
template <int kBits>
struct Code {
  __m256i v;
};
template <>
struct Code<8> {
  __m256i v;
  __m256i magnitude;
};
template <int kBits>
struct DotSum {
  __m256i pairs;
  __m256i sum;
};

template <int kBits>
constexpr int kPairSums = kBits == 4   ? 8
                          : kBits == 5 ? 4
                          : kBits == 6 ? 2
                                       : 1;

inline Quad LoadActivations(const int8_t* q) {
  int32_t quad;
  __builtin_memcpy(&quad, q, sizeof(quad));
  return _mm256_set1_epi32(quad);
}
template <int kBits>
inline Code<kBits> MakeCode(Bytes codes) {
  if constexpr (kBits == 8) {
    const __m256i w = _mm256_xor_si256(codes.v, _mm256_set1_epi8(-128));
    return {w, _mm256_abs_epi8(w)};
  } else {
    return {codes.v};
  }
}
template <int kBits, bool kOffset>
inline DotSum<kBits> StartDot(const int32_t* /*start*/) {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
// GCC would put all additions off to the end, and spill every term.
inline void Keep(__m256i* v) { asm("" : "+x"(*v)); }
template <int kQuad, int kBits>
inline void AddQuad(Code<kBits> code, Quad quad, DotSum<kBits>* sum) {
  __m256i pairs;
  if constexpr (kBits == 8) {
    pairs =
        _mm256_maddubs_epi16(code.magnitude, _mm256_sign_epi8(quad, code.v));
  } else {
    pairs = _mm256_maddubs_epi16(code.v, quad);
  }
  if constexpr (kQuad % kPairSums<kBits> == 0) {
    sum->pairs = pairs;
  } else {
    sum->pairs = _mm256_add_epi16(sum->pairs, pairs);
    Keep(&sum->pairs);
  }
  if constexpr (kQuad % kPairSums<kBits> == kPairSums<kBits> - 1) {
    const __m256i wide = _mm256_madd_epi16(sum->pairs, _mm256_set1_epi16(1));
    sum->sum = _mm256_add_epi32(sum->sum, wide);
    Keep(&sum->sum);
  }
}
template <bool kOffset, int kBits>
inline I32 FinishDot(DotSum<kBits> sum, const int32_t* start) {
  if constexpr (kOffset && kBits != 8) {
    return {_mm256_add_epi32(sum.sum, _mm256_set1_epi32(*start))};
  }
  return {sum.sum};
}

constexpr int32_t SignedDotStart(int32_t /*sum*/) { return 0; }
// Pairs of |k| <= 128 and |q| <= 127 stay below 2^15.
inline I32 AddDotSigned(I32 acc, Bytes codes, int32_t quad) {
  const __m256i k = _mm256_xor_si256(codes.v, _mm256_set1_epi8(-128));
  const __m256i pairs = _mm256_maddubs_epi16(
      _mm256_abs_epi8(k), _mm256_sign_epi8(_mm256_set1_epi32(quad), k));
  return {
      _mm256_add_epi32(acc.v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
}
// Pairs of 255 · 127 would not fit: even and odd bytes as int16.
inline I32 AddDotUnsigned(I32 acc, Bytes codes, int32_t quad) {
  const __m256i u = _mm256_set1_epi32(quad);
  const __m256i even =
      _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16(codes.v, 8), 8),
                        _mm256_and_si256(u, _mm256_set1_epi16(0xff)));
  const __m256i odd =
      _mm256_madd_epi16(_mm256_srai_epi16(codes.v, 8), _mm256_srli_epi16(u, 8));
  return {_mm256_add_epi32(acc.v, _mm256_add_epi32(even, odd))};
}

// The quantised register tile, out of 16 registers: pair sums (4 bits), or both
// sums, and accumulators.
constexpr int kTileColumns = 1;
template <int kBits>
constexpr int kTileRows = kBits == 4 ? 6 : 5;

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_DOT_MADDUBS_INL_H_
