#ifndef BATON_COMMON_SAMPLING_CANDIDATE_H_
#define BATON_COMMON_SAMPLING_CANDIDATE_H_

#include <limits>

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

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_CANDIDATE_H_
