#include "decode_worker/speculation/acceptance_estimate.h"

namespace baton::decode {
namespace {

// A guess weighs half of one that came 14 guesses of its class later.
constexpr double kDecay = 0.95;
// The expectation counts as so many guesses.
constexpr double kPriorWeight = 3;
constexpr double kPriors[Evidence::kLengths] = {0.03, 0.15, 0.40, 0.60,
                                                0.70, 0.80, 0.90, 0.95};
constexpr double kSplitPrior = 0.5;  // of the above

}  // namespace

AcceptanceEstimate::AcceptanceEstimate() {
  for (size_t i = 0; i < means_.size(); ++i) {
    const double factor = i < Evidence::kLengths ? 1 : kSplitPrior;
    means_[i] = {kPriorWeight * factor * kPriors[i % Evidence::kLengths],
                 kPriorWeight};
  }
}

void AcceptanceEstimate::Observe(Evidence evidence, bool right) {
  Mean& mean = means_[evidence.index()];
  mean.right = mean.right * kDecay + (right ? 1 : 0);
  mean.all = mean.all * kDecay + 1;
}

}  // namespace baton::decode
