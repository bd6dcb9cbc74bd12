#ifndef BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_
#define BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_

#include <array>

#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

// Means that forget, per class of evidence.
class AcceptanceMeans {
 public:
  // A guess weighs `decay` of the next one of its class.
  explicit AcceptanceMeans(double decay) : decay_(decay) {}

  // As if so many guesses had come, that share of them right.
  void Expect(size_t index, double share, double guesses) {
    means_[index] = {share * guesses, guesses};
  }
  void Observe(Evidence evidence, bool right) {
    Mean& mean = means_[evidence.index()];
    mean.right = mean.right * decay_ + (right ? 1 : 0);
    mean.all = mean.all * decay_ + 1;
  }
  // The mean with so many more guesses, that share of them right.
  double With(Evidence evidence, double share, double guesses) const {
    const Mean& mean = means_[evidence.index()];
    return (mean.right + share * guesses) / (mean.all + guesses);
  }

 private:
  struct Mean {
    double right = 0, all = 0;  // decayed
  };
  const double decay_;
  std::array<Mean, Evidence::kClasses> means_{};
};

// What a worker expects of guesses before a request has shown anything: learned
// from all requests. At first much of what repeats the prompt, whose writer
// asked for it, and little of what repeats the answer: a text that cannot be
// guessed repeats itself by chance.
class AcceptancePrior {
 public:
  AcceptancePrior();

  double Probability(Evidence evidence) const {
    return means_.With(evidence, 0, 0);
  }
  void Observe(Evidence evidence, bool right) {
    means_.Observe(evidence, right);
  }

 private:
  AcceptanceMeans means_;
};

// How often the guesses of one request turn out right, from the prior at first.
// Guesses count whether or not they were drafted, so a request whose text
// becomes predictable is noticed without a try.
class AcceptanceEstimate {
 public:
  // `prior` outlives this and learns what this does.
  explicit AcceptanceEstimate(AcceptancePrior* prior);

  double Probability(Evidence evidence) const;
  // What to count on: 0 where it is not likely enough to be tried.
  double Trusted(Evidence evidence) const;
  void Observe(Evidence evidence, bool right);

 private:
  AcceptancePrior* const prior_;
  AcceptanceMeans means_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_ACCEPTANCE_ESTIMATE_H_
