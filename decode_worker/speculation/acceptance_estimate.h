#ifndef BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_
#define BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_

#include <array>

#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

// How often the guesses of one request turn out right, per class of evidence:
// a mean that forgets, from an expectation at first. Guesses count whether or
// not they were drafted, so a request whose text becomes predictable is
// noticed without a try.
class AcceptanceEstimate {
 public:
  AcceptanceEstimate();

  double Probability(Evidence evidence) const {
    return means_[evidence.index()].right / means_[evidence.index()].all;
  }
  void Observe(Evidence evidence, bool right);

 private:
  struct Mean {
    double right = 0, all = 0;  // decayed
  };
  std::array<Mean, Evidence::kClasses> means_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_
