#ifndef BATON_COMMON_MODEL_ROPE_H_
#define BATON_COMMON_MODEL_ROPE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/model/model.h"

namespace baton {

// Rotary position embedding (Su et al., RoFormer, 2021):
//   angle(p, i) = p · base^(-2i / rotary_dims) / factor_i
// in double, its cosine and sine rounded to fp32 once. The same bits on every
// host. Immutable, thread-safe.
class Rope {
 public:
  // `factors` (Llama 3's rope_freqs) has rotary_dims / 2 finite positive
  // values, or none: all 1.
  Rope(const ModelConfig& config, absl::Span<const float> factors);

  // Writes cos and sin of each position's angles, both [positions, pairs()].
  void Angles(absl::Span<const int32_t> positions, float* cos,
              float* sin) const;
  int pairs() const { return static_cast<int>(frequencies_.size()); }

 private:
  std::vector<double> frequencies_;  // radians per position
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_ROPE_H_
