#include "decode_worker/batch_cap.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/base/strings.h"

namespace baton::decode {
namespace {

// A step so much longer than that of one row is as good as it.
constexpr double kNextToNothing = 1.1;

}  // namespace

std::string BatchCap::WhyFull(const CostModel* costs, const DecodeBatch& batch,
                              uint32_t choices, uint32_t position) const {
  if (batch.sequences + choices > max_sequences_) {
    return StrCat("sequences: ", batch.sequences, " of ", max_sequences_,
                  " are taken, ", choices, " wanted");
  }
  if (costs == nullptr || target_ <= Duration::zero() || batch.sequences == 0) {
    return "";
  }
  const double seconds =
      DecodeStepSeconds(costs->costs(), batch.With(choices, position));
  const double limit = LimitSeconds(*costs, position);
  if (seconds <= limit) return "";
  return absl::StrFormat(
      "step: %d sequences run, with %d more it would take %.1f ms, allowed "
      "%.1f",
      batch.sequences, choices, 1e3 * seconds, 1e3 * limit);
}

double BatchCap::StepSeconds(const CostModel& costs,
                             const DecodeBatch& batch) const {
  if (target_ <= Duration::zero() || batch.sequences == 0) {
    return std::numeric_limits<double>::infinity();
  }
  return LimitSeconds(costs, batch.positions / batch.sequences);
}

uint32_t BatchCap::Limit(const CostModel* costs,
                         const DecodeBatch& batch) const {
  if (costs == nullptr || target_ <= Duration::zero()) return max_sequences_;
  const uint64_t position =
      batch.sequences == 0 ? 1 : batch.positions / batch.sequences;
  const double limit = LimitSeconds(*costs, position);
  uint32_t fitting = 1;
  uint32_t above = max_sequences_ + 1;
  while (above - fitting > 1) {
    const uint32_t middle = fitting + (above - fitting) / 2;
    const bool fits =
        DecodeStepSeconds(costs->costs(),
                          DecodeBatch().With(middle, position)) <= limit;
    (fits ? fitting : above) = middle;
  }
  return fitting;
}

double BatchCap::LimitSeconds(const CostModel& costs, uint64_t position) const {
  const double alone =
      DecodeStepSeconds(costs.costs(), DecodeBatch().With(1, position));
  return std::max(Seconds(target_), kNextToNothing * alone);
}

}  // namespace baton::decode
