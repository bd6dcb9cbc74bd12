#include "common/sampling/gumbel_noise.h"

namespace baton {
namespace {

constexpr int kGroups = GumbelNoise::kBlock / 4;

// Lanes are groups of four tokens.
using Words = std::array<uint32_t, kGroups>;

}  // namespace

void GumbelNoise::BlockUniforms(TokenId first, float* uniforms) const {
  Words c0, c1, c2, c3;
  for (uint32_t lane = 0; lane < kGroups; ++lane) {
    c0[lane] = first / 4 + lane;
    c1[lane] = choice_;
    c2[lane] = position_[0];
    c3[lane] = position_[1];
  }
  PhiloxKey key = key_;
  for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kGroups; ++lane) {
      PhiloxRound(key, &c0[lane], &c1[lane], &c2[lane], &c3[lane]);
    }
    key = NextPhiloxKey(key);
  }
  for (int lane = 0; lane < kGroups; ++lane) {
    uniforms[4 * lane] = Uniform(c0[lane]);
    uniforms[4 * lane + 1] = Uniform(c1[lane]);
    uniforms[4 * lane + 2] = Uniform(c2[lane]);
    uniforms[4 * lane + 3] = Uniform(c3[lane]);
  }
}

}  // namespace baton
