#ifndef BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_
#define BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_

#include "kernels/cpu/simd/vector_avx2-inl.h"

// Dot products of vector_avx2-inl.h by the 256-bit vpdpbusd of AVX-VNNI.
namespace baton::kernels::cpu::BATON_ISA {

using DotVector = __m256i;
inline DotVector BroadcastInt(int32_t x) { return _mm256_set1_epi32(x); }
inline DotVector AddDotBytes(DotVector sum, DotVector unsigned_bytes,
                             DotVector signed_bytes) {
  return _mm256_dpbusd_avx_epi32(sum, unsigned_bytes, signed_bytes);
}

constexpr int32_t SignedDotStart(int32_t sum) { return -128 * sum; }
inline I32 AddDotSigned(I32 acc, Bytes codes, int32_t quad) {
  return {AddDotBytes(acc.v, codes.v, BroadcastInt(quad))};
}
inline I32 AddDotUnsigned(I32 acc, Bytes codes, int32_t quad) {
  return {AddDotBytes(acc.v, BroadcastInt(quad), codes.v)};
}

// The quantised register tile: 6 sums and 6 accumulators leave 4 of 16
// registers; codes of 6 bits also keep the product of their first half.
constexpr int kTileColumns = 1;
template <int kBits>
constexpr int kTileRows = kBits == 6 ? 4 : 6;

}  // namespace baton::kernels::cpu::BATON_ISA

// Written in the vocabulary above.
#include "kernels/cpu/simd/dot_vnni-inl.h"

#endif  // BATON_KERNELS_CPU_SIMD_DOT_AVXVNNI_INL_H_
