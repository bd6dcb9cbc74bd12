#ifndef BATON_KERNELS_CPU_SIMD_DOT_VNNI_INL_H_
#define BATON_KERNELS_CPU_SIMD_DOT_VNNI_INL_H_

#include <cstdint>

// Dot products of the quantised register tile by vpdpbusd of any width, over
// Bytes, I32, DotVector, BroadcastInt and AddDotBytes of the header that
// includes this one.
namespace baton::kernels::cpu::BATON_ISA {

using Quad = DotVector;
template <int kBits>
struct Code {
  DotVector v;
};
template <int kBits>
struct DotSum {
  DotVector v;
};

inline Quad LoadActivations(const int8_t* q) {
  int32_t quad;
  __builtin_memcpy(&quad, q, sizeof(quad));
  return BroadcastInt(quad);
}
template <int kBits>
inline Code<kBits> MakeCode(Bytes codes) {
  return {codes.v};
}
template <int kBits, bool kOffset>
inline DotSum<kBits> StartDot(const int32_t* start) {
  return {BroadcastInt(kOffset ? *start : 0)};
}
template <int kQuad, int kBits>
inline void AddQuad(Code<kBits> code, Quad quad, DotSum<kBits>* sum) {
  sum->v = AddDotBytes(sum->v, code.v, quad);
}
template <bool kOffset, int kBits>
inline I32 FinishDot(DotSum<kBits> sum, const int32_t* /*start*/) {
  return {sum.v};
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_DOT_VNNI_INL_H_
