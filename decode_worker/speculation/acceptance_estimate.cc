#include "decode_worker/speculation/acceptance_estimate.h"

namespace baton::decode {
namespace {

// Chosen on the answers to tests/load/workloads and to random prompts, so that
// the latter draft next to nothing and the former lose little by that.
constexpr double kDecay = 0.97;         // of a request's guesses
constexpr double kWorkerDecay = 0.995;  // of all requests'
constexpr double kWorkerGuesses = 20;   // that the first expectation counts as
constexpr double kQuoted[Evidence::kLengths] = {0.20, 0.55, 0.75, 0.85,
                                                0.90, 0.92, 0.95, 0.98};
constexpr double kRepeated[Evidence::kLengths] = {0.01, 0.03, 0.10, 0.15,
                                                  0.20, 0.30, 0.50, 0.70};
constexpr double kSplit = 0.5;  // of the above
// What is expected counts as so many guesses of the request.
constexpr double kQuotedGuesses = 3, kRepeatedGuesses = 16;
constexpr double kLeastRepeated = 0.5;  // that is tried

}  // namespace

AcceptancePrior::AcceptancePrior() : means_(kWorkerDecay) {
  for (size_t i = 0; i < Evidence::kLengths; ++i) {
    for (const bool split : {false, true}) {
      const double factor = split ? kSplit : 1;
      means_.Expect(Evidence::IndexOf(i, split, true), factor * kQuoted[i],
                    kWorkerGuesses);
      means_.Expect(Evidence::IndexOf(i, split, false), factor * kRepeated[i],
                    kWorkerGuesses);
    }
  }
}

AcceptanceEstimate::AcceptanceEstimate(AcceptancePrior* prior)
    : prior_(prior), means_(kDecay) {}

double AcceptanceEstimate::Probability(Evidence evidence) const {
  return means_.With(evidence, prior_->Probability(evidence),
                     evidence.quoted() ? kQuotedGuesses : kRepeatedGuesses);
}

double AcceptanceEstimate::Trusted(Evidence evidence) const {
  const double probability = Probability(evidence);
  return evidence.quoted() || probability >= kLeastRepeated ? probability : 0;
}

void AcceptanceEstimate::Observe(Evidence evidence, bool right) {
  means_.Observe(evidence, right);
  prior_->Observe(evidence, right);
}

}  // namespace baton::decode
