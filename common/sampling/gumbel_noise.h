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
    for (int i = 0; i < 4; ++i) {
      const float scaled =
          std::fma(static_cast<float>(words[i]), 0x1p-32f, 0x1p-33f);
      uniforms[i] = std::min(scaled, 1.0f - 0x1p-24f);
    }
    return uniforms;
  }

  float operator()(TokenId token) const {
    return FromUniform(Uniforms(token / 4)[token % 4]);
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
