#ifndef BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_
#define BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_

#include "kernels/cpu/simd/vector_avx2-inl.h"

// Dot products of vector_avx2-inl.h by the 256-bit vpdpbusd of AVX-VNNI.
namespace baton::kernels::cpu::BATON_ISA {

using Quad = __m256i;
template <int kBits>
struct Code {
  __m256i v;
};
template <int kBits>
struct DotSum {
  __m256i v;
};

inline Quad LoadActivations(const int8_t* q) {
  int32_t quad;
  __builtin_memcpy(&quad, q, sizeof(quad));
  return _mm256_set1_epi32(quad);
}
template <int kBits>
inline Code<kBits> MakeCode(Bytes codes) {
  return {codes.v};
}
template <int kBits, bool kOffset>
inline DotSum<kBits> StartDot(const int32_t* start) {
  return {kOffset ? _mm256_set1_epi32(*start) : _mm256_setzero_si256()};
}
template <int kQuad, int kBits>
inline void AddQuad(Code<kBits> code, Quad quad, DotSum<kBits>* sum) {
  sum->v = _mm256_dpbusd_avx_epi32(sum->v, code.v, quad);
}
template <bool kOffset, int kBits>
inline I32 FinishDot(DotSum<kBits> sum, const int32_t* /*start*/) {
  return {sum.v};
}

constexpr int32_t SignedDotStart(int32_t sum) { return -128 * sum; }
inline I32 AddDotSigned(I32 acc, Bytes codes, int32_t quad) {
  return {_mm256_dpbusd_avx_epi32(acc.v, codes.v, _mm256_set1_epi32(quad))};
}
inline I32 AddDotUnsigned(I32 acc, Bytes codes, int32_t quad) {
  return {_mm256_dpbusd_avx_epi32(acc.v, _mm256_set1_epi32(quad), codes.v)};
}

// The quantised register tile: 6 sums and 6 accumulators leave 4 of 16
// registers; codes of 6 bits also keep the product of their first half.
constexpr int kTileColumns = 1;
template <int kBits>
constexpr int kTileRows = kBits == 6 ? 4 : 6;

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_
