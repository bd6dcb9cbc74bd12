#ifndef BATON_COMMON_SAMPLING_LOGIT_BLOCKS_H_
#define BATON_COMMON_SAMPLING_LOGIT_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/sampling/candidate.h"

namespace baton {

// One pass over a row of logits, logits[i] of token i: whether all are finite,
// the best one, and the largest of every 64 neighbours, by which later steps
// find the few tokens that matter without another pass. Refers to the logits.
class LogitBlocks {
 public:
  static constexpr size_t kTokens = 64;

  // Requires: logits is not empty.
  explicit LogitBlocks(absl::Span<const float> logits);

  absl::Span<const float> logits() const { return logits_; }
  // No NaN and no infinity. With a NaN, best() and maxima() mean nothing.
  bool finite() const { return finite_; }
  // First in rank.
  const Candidate& best() const { return best_; }
  absl::Span<const float> maxima() const { return maxima_; }

  // Calls visit(token, logit) for every token of a block whose largest logit
  // satisfies `enter`, by id.
  template <typename Enter, typename Visit>
  void ForEach(Enter enter, Visit visit) const {
    for (size_t block = 0; block < maxima_.size(); ++block) {
      if (!enter(maxima_[block])) continue;
      const size_t end = std::min(logits_.size(), (block + 1) * kTokens);
      for (size_t i = block * kTokens; i < end; ++i) {
        visit(static_cast<TokenId>(i), logits_[i]);
      }
    }
  }

 private:
  absl::Span<const float> logits_;
  bool finite_ = true;
  Candidate best_;
  std::vector<float> maxima_;
};

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_LOGIT_BLOCKS_H_
