#ifndef BATON_KERNELS_API_HALF_H_
#define BATON_KERNELS_API_HALF_H_

#include <bit>
#include <cstdint>

namespace baton::kernels {

// IEEE binary16 (F16) and bfloat16 (BF16) as bit patterns. Widening is exact
// (signalling NaNs become quiet); narrowing rounds to nearest even, as the
// F16C and AVX-512 conversion instructions do.

inline float F16ToF32(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {
    const uint32_t quiet = mantissa == 0 ? 0 : 0x400000u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

// Magnitudes that round beyond 65504 become infinity.
inline uint16_t F32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // a denormal half: adding 0.5 aligns it
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + odd;
  return static_cast<uint16_t>(sign | rounded >> 13);
}

// As F32ToF16, but infinities and finite overflow become ±65504: how values
// enter an F16 KV cache.
inline uint16_t F32ToF16Saturated(float value) {
  value = value > 65504.0f ? 65504.0f : value;
  value = value < -65504.0f ? -65504.0f : value;
  return F32ToF16(value);
}

inline float Bf16ToF32(uint16_t value) {
  const uint32_t bits = uint32_t{value} << 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>(nan ? bits | 0x400000u : bits);
}

inline uint16_t F32ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_HALF_H_
