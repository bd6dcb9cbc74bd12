#ifndef BATON_COMMON_SAMPLING_CANDIDATES_H_
#define BATON_COMMON_SAMPLING_CANDIDATES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "common/tokens/token.h"

namespace baton {

// A token as a candidate for the draw. Candidates are ranked by logit
// descending, then id ascending: a total order, so every top-k and top-p set
// is exactly "all that rank no later than its last one".
struct Candidate {
  float logit = -std::numeric_limits<float>::infinity();
  TokenId token = std::numeric_limits<TokenId>::max();

  friend bool RanksBefore(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  }
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// The default Candidate ranks after all: a cut that keeps everything.
inline bool Keeps(const Candidate& last, const Candidate& candidate) {
  return !RanksBefore(last, candidate);
}

// All functions below: logits[i] belongs to token i, is finite or -infinity
// (never a candidate), and `logits` is not empty.

// Whether there is no NaN or infinity.
bool AllFinite(absl::Span<const float> logits);

// First in rank.
Candidate Best(absl::Span<const float> logits);

// Last one kept of the k first in rank, k >= 1. One pass and a partial
// selection within one narrow range of logits.
Candidate TopKCut(absl::Span<const float> logits, const Candidate& best,
                  size_t k);

// Last one kept of the shortest run in rank whose probability, among those
// that `within` keeps and at `temperature` > 0, reaches p, 0 < p <= 1. Mass is
// added in double: by id within a range of logits, ranges in rank order.
Candidate TopPCut(absl::Span<const float> logits, const Candidate& best,
                  float temperature, float p, const Candidate& within);

// All that `last` keeps, in rank order.
std::vector<Candidate> RankedUpTo(absl::Span<const float> logits,
                                  const Candidate& last);

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_CANDIDATES_H_
