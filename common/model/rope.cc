#include "common/model/rope.h"

#include "kernels/api/exact_math_double.h"

namespace baton {

Rope::Rope(const ModelConfig& config, absl::Span<const float> factors) {
  for (int i = 0; i < config.rotary_dims / 2; ++i) {
    const double frequency =
        kernels::Pow(config.rope_base, -2.0 * i / config.rotary_dims);
    const double factor = factors.empty() ? 1.0 : factors[i];
    frequencies_.push_back(frequency / factor);
  }
}

void Rope::Angles(absl::Span<const int32_t> positions, float* cos,
                  float* sin) const {
  for (const int32_t position : positions) {
    for (const double frequency : frequencies_) {
      const double angle = position * frequency;
      *cos++ = static_cast<float>(kernels::Cos(angle));
      *sin++ = static_cast<float>(kernels::Sin(angle));
    }
  }
}

}  // namespace baton
