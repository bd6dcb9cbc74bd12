#ifndef BATON_COMMON_SAMPLING_GUMBEL_NOISE_H_
#define BATON_COMMON_SAMPLING_GUMBEL_NOISE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "common/sampling/philox.h"
#include "common/tokens/token.h"
#include "kernels/api/exact_math.h"

namespace baton {

// Noise of one draw: token t gets the Gumbel variate -log(-log(1 - v(t))) with
// v(t) = word t mod 4 of Philox(key = seed; counter = t / 4, choice, position)
// scaled to (0, 1). The token with the largest log-weight + noise is a sample
// of the distribution of the weights; whoever draws with the same seed, choice
// and position (a draft model, a replay) meets the same noise. exact-v1.
class GumbelNoise {
 public:
  GumbelNoise(uint64_t seed, uint32_t choice, uint64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        choice_(choice),
        position_{static_cast<uint32_t>(position),
                  static_cast<uint32_t>(position >> 32)} {}

  // v of tokens 4 * group .. 4 * group + 3.
  std::array<float, 4> Uniforms(uint32_t group) const {
    const std::array<uint32_t, 4> words =
        Philox4x32({group, choice_, position_[0], position_[1]}, key_);
    std::array<float, 4> uniforms;
    for (int i = 0; i < 4; ++i) uniforms[i] = Uniform(words[i]);
    return uniforms;
  }

  // v of `kBlock` tokens from `first`, a multiple of 4, on: the same values.
  static constexpr uint32_t kBlock = 64;
  void BlockUniforms(TokenId first, float* uniforms) const;

  float operator()(TokenId token) const {
    return FromUniform(Uniforms(token / 4)[token % 4]);
  }

  static float Uniform(uint32_t word) {
    // One rounding, of the sum: what a conversion of the word gives, from
    // conversions of signed numbers, which every machine has for vectors.
    const float rounded =
        static_cast<float>(static_cast<int32_t>(word >> 16)) * 65536.0f +
        static_cast<float>(static_cast<int32_t>(word & 0xffff));
    const float scaled = std::fma(rounded, 0x1p-32f, 0x1p-33f);
    return std::min(scaled, 1.0f - 0x1p-24f);
  }

  // log(1 - v) keeps full precision for small v: log(w) · v / (1 - w) with
  // w = 1 - v rounded (Goldberg, "What every computer scientist should know
  // about floating-point arithmetic", theorem 4).
  static float FromUniform(float v) {
    const float w = 1.0f - v;
    const float exponential =
        w == 1.0f ? v : -kernels::Log(w) * (v / (1.0f - w));
    return -kernels::Log(exponential);
  }

  // Whether FromUniform(v) can exceed `level`; never false when it does.
  // Needs no logarithm: the noise is at most -log v.
  static bool MayExceed(float v, float level) {
    const int exponent = static_cast<int>(std::bit_cast<uint32_t>(v) >> 23);
    return static_cast<float>(127 - exponent) >
           level * kernels::exact::kLog2E - 0.01f;
  }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t choice_;
  std::array<uint32_t, 2> position_;
};

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_GUMBEL_NOISE_H_
