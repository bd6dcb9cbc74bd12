#ifndef BATON_KERNELS_CPU_SIMD_INT8_HEAD_INL_H_
#define BATON_KERNELS_CPU_SIMD_INT8_HEAD_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/elementwise-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

inline int32_t QuadAt(const void* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return quad;
}

// As KernelTable::hadamard. Blocks of up to kLanes lie inside one vector.
inline void Hadamard(int n, float* x) {
  const int block = n & -n;
  for (int d = 0; d < n; d += kLanes) {
    Store(x + d, HadamardLanes(Load(x + d), block));
  }
  for (int h = kLanes; h < block; h *= 2) {
    for (int i = 0; i < n; i += kLanes) {
      if ((i & h) != 0) continue;
      const F32 a = Load(x + i), b = Load(x + i + h);
      Store(x + i, Add(a, b));
      Store(x + i + h, Sub(a, b));
    }
  }
}

// As KernelTable::quantize_head.
inline float QuantizeHead(const float* x, int n, int8_t* q) {
  I32 maximum_bits = AbsBits(LoadFirst(x, n));
  for (int d = kLanes; d < n; d += kLanes) {
    maximum_bits = Max(maximum_bits, AbsBits(LoadFirst(x + d, n - d)));
  }
  const int32_t bits = ReduceMax(maximum_bits);
  const bool tiny = bits < kTinyMaximumBits;
  if (tiny || bits >= kInfinityBits) {
    for (int d = 0; d < PaddedHeadDim(n); ++d) q[d] = 0;
    return tiny ? 0.0f : __builtin_nanf("");
  }
  const float maximum = __builtin_bit_cast(float, bits);
  const F32 inverse = Set(127.0f / maximum);
  for (int d = 0; d < PaddedHeadDim(n); d += kLanes) {
    StoreInt8(q + d, Mul(LoadFirst(x + d, n - d), inverse));
  }
  return maximum / 127.0f;
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_INT8_HEAD_INL_H_
