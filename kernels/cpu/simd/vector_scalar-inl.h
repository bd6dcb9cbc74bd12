#ifndef BATON_KERNELS_CPU_SIMD_VECTOR_SCALAR_INL_H_
#define BATON_KERNELS_CPU_SIMD_VECTOR_SCALAR_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/api/exact_math.h"

// One lane per vector: the kernels as plain scalar code. The other vector_*
// headers give the same names to wider vectors.
namespace baton::kernels::cpu::BATON_ISA {

constexpr int kLanes = 1;
constexpr int kChainColumns = 4;  // vectors of an FMA-chain register tile

struct F32 {
  float v;
};
struct I32 {
  int32_t v;
};
struct Bytes {  // kLanes groups of four bytes
  uint32_t v;
};
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

inline F32 Set(float x) { return {x}; }
inline F32 Load(const float* p) { return {*p}; }
inline F32 Load(const F16* p) { return {_cvtsh_ss(p->bits)}; }
inline F32 Load(const Bf16* p) {
  return {__builtin_bit_cast(float, uint32_t{p->bits} << 16)};
}
inline void Store(float* p, F32 a) { *p = a.v; }
inline void Store(F16* p, F32 a) {
  p->bits = _cvtss_sh(a.v, _MM_FROUND_TO_NEAREST_INT);
}
inline F32 LoadFirst(const float* p, int n) { return {n > 0 ? *p : 0.0f}; }
inline void StoreFirst(float* p, F32 a, int n) {
  if (n > 0) *p = a.v;
}
inline F32 KeepFirst(F32 a, int n, float fill) { return {n > 0 ? a.v : fill}; }

inline F32 Add(F32 a, F32 b) { return {a.v + b.v}; }
inline F32 Sub(F32 a, F32 b) { return {a.v - b.v}; }
inline F32 Mul(F32 a, F32 b) { return {a.v * b.v}; }
inline F32 Div(F32 a, F32 b) { return {a.v / b.v}; }
inline F32 Fma(F32 a, F32 b, F32 c) { return {__builtin_fmaf(a.v, b.v, c.v)}; }
inline F32 NegFma(F32 a, F32 b, F32 c) {
  return {__builtin_fmaf(-a.v, b.v, c.v)};
}
inline F32 Max(F32 a, F32 b) { return {a.v > b.v ? a.v : b.v}; }
inline F32 Min(F32 a, F32 b) { return {a.v < b.v ? a.v : b.v}; }
inline float ReduceMax(F32 a) { return a.v; }

inline float SquareRoot(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

// rne(x), and in `shifted` what ScaleByPowerOfTwo takes for it.
inline F32 RoundToWhole(F32 x, F32* shifted) {
  const F32 magic = Set(exact::kRoundMagic);
  *shifted = Add(x, magic);
  return Sub(*shifted, magic);
}
// p · 2^n, rounded once; `shifted` = 1.5 · 2^23 + n.
inline F32 ScaleByPowerOfTwo(F32 p, F32 /*n*/, F32 shifted) {
  const auto n = static_cast<int32_t>(__builtin_bit_cast(uint32_t, shifted.v) -
                                      0x4b400000u);
  const auto half = static_cast<uint32_t>(n >> 1);
  const uint32_t rest = static_cast<uint32_t>(n) - half;
  return {p.v * __builtin_bit_cast(float, (half + 127) << 23) *
          __builtin_bit_cast(float, (rest + 127) << 23)};
}

// Adds 16 stripes as the tree of exact-v1.
inline float SumStripes(const F32 (&stripes)[16]) {
  float s[16];
  for (int i = 0; i < 16; ++i) s[i] = stripes[i].v;
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) s[i] += s[i + width];
  }
  return s[0];
}

inline F32 ToFloat(I32 a) { return {static_cast<float>(a.v)}; }
inline I32 Load(const int32_t* p) { return {*p}; }
inline I32 LoadUnsigned(const uint8_t* p) { return {*p}; }
inline I32 LoadSigned(const uint8_t* p) { return {static_cast<int8_t>(*p)}; }
inline I32 AbsBits(F32 a) {
  return {
      static_cast<int32_t>(__builtin_bit_cast(uint32_t, a.v) & 0x7fffffffu)};
}
inline I32 Max(I32 a, I32 b) { return a.v > b.v ? a : b; }
inline int32_t ReduceMax(I32 a) { return a.v; }
// rne(a) as int8; |a| < 127.5.
inline void StoreInt8(int8_t* p, F32 a) {
  *p = static_cast<int8_t>(__builtin_rintf(a.v));
}
inline int32_t Sum16(const int8_t* p) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += p[i];
  return sum;
}

inline Bytes LoadBytes(const uint8_t* p) {
  uint32_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return {v};
}
inline void StoreBytes(int8_t* p, Bytes a) {
  __builtin_memcpy(p, &a.v, sizeof(a.v));
}
inline Bytes Sub(Bytes a, uint8_t b) {  // byte by byte, modulo 256
  uint32_t difference = 0;
  for (int i = 0; i < 32; i += 8) {
    difference |= (((a.v >> i) - b) & 0xffu) << i;
  }
  return {difference};
}
inline Bytes And(Bytes a, uint8_t mask) { return {a.v & mask * 0x01010101u}; }
// low & low_mask | high & high_mask; low_mask | high_mask = 2^n - 1.
inline Bytes Join(Bytes low, uint8_t low_mask, Bytes high, uint8_t high_mask) {
  return {And(low, low_mask).v | And(high, high_mask).v};
}
// Left for n > 0, right for n < 0; bits cross into neighbours: mask after.
template <int n>
inline Bytes Shift(Bytes a) {
  return {n >= 0 ? a.v << (n & 31) : a.v >> (-n & 31)};
}

// Dot products of codes of kBits bits with activations: AddQuad adds four
// products per lane, quads come in increasing order. `start` (if kOffset)
// corrects for unsigned codes: - offset · Σ activations.
using Quad = const int8_t*;
template <int kBits>
struct Code {
  uint32_t v;
};
template <int kBits>
struct DotSum {
  int32_t v;
};

inline Quad LoadActivations(const int8_t* q) { return q; }
template <int kBits>
inline Code<kBits> MakeCode(Bytes codes) {
  return {codes.v};
}
template <int kBits, bool kOffset>
inline DotSum<kBits> StartDot(const int32_t* start) {
  return {kOffset ? *start : 0};
}
template <int kQuad, int kBits>
inline void AddQuad(Code<kBits> code, Quad quad, DotSum<kBits>* sum) {
  for (int b = 0; b < 4; ++b) {
    sum->v += static_cast<int32_t>((code.v >> (8 * b)) & 0xffu) * quad[b];
  }
}
template <bool kOffset, int kBits>
inline I32 FinishDot(DotSum<kBits> sum, const int32_t* /*start*/) {
  return {sum.v};
}

constexpr int kTileColumns = 1;  // vectors of a quantised register tile
template <int kBits>
constexpr int kTileRows = 4;

// Reductions of attention, over kRowsReduced rows at once.
constexpr int kRowsReduced = 4;
inline void ReduceMaxRows(const F32 (&rows)[kRowsReduced], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) out[r] = rows[r].v;
}
// Of bits of floats that are not negative.
inline void ReduceMaxRows(const I32 (&rows)[kRowsReduced], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) {
    out[r] = __builtin_bit_cast(float, rows[r].v);
  }
}
inline void SumStripesRows(const F32 (*stripes)[16], float* out) {
  for (int r = 0; r < kRowsReduced; ++r) out[r] = SumStripes(stripes[r]);
}

// Steps h = 1, 2, 4, .. < block of a Walsh-Hadamard transform inside a vector.
inline F32 HadamardLanes(F32 a, int /*block*/) { return a; }

inline I32 SetInt(int32_t x) { return {x}; }
inline I32 Add(I32 a, I32 b) { return {a.v + b.v}; }
// acc + codes · quad: per lane four bytes, those of the quad the same in all.
// Codes are offset by 128; the sum lacks SignedDotStart(Σ quads).
constexpr int32_t SignedDotStart(int32_t sum) { return -128 * sum; }
inline I32 AddDotSigned(I32 acc, Bytes codes, int32_t quad) {
  for (int b = 0; b < 32; b += 8) {
    acc.v += static_cast<int32_t>((codes.v >> b) & 0xffu) *
             static_cast<int8_t>(quad >> b);
  }
  return acc;
}
// Codes are signed, the quad is unsigned.
inline I32 AddDotUnsigned(I32 acc, Bytes codes, int32_t quad) {
  for (int b = 0; b < 32; b += 8) {
    acc.v += static_cast<int8_t>(codes.v >> b) *
             static_cast<int32_t>(static_cast<uint8_t>(quad >> b));
  }
  return acc;
}
// rne(a) as uint8; 0 <= a < 255.5.
inline void StoreUint8(uint8_t* p, F32 a) {
  *p = static_cast<uint8_t>(__builtin_rintf(a.v));
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_VECTOR_SCALAR_INL_H_
