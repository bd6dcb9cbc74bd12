#ifndef BATON_COMMON_SAMPLING_CANDIDATES_H_
#define BATON_COMMON_SAMPLING_CANDIDATES_H_

#include <cstddef>
#include <vector>

#include "common/sampling/candidate.h"
#include "common/sampling/logit_blocks.h"

namespace baton {

// All functions below: every logit is finite or -infinity (never a candidate)
// and at least one is finite.

// Last one kept of the k first in rank, k >= 1. Looks only into the blocks that
// can hold one of them, unless k exceeds their number.
Candidate TopKCut(const LogitBlocks& blocks, size_t k);

// Last one kept of the shortest run in rank whose probability, among those
// that `within` keeps and at `temperature` > 0, reaches p, 0 < p <= 1. Mass is
// added in double: by id within a range of logits, ranges in rank order.
Candidate TopPCut(const LogitBlocks& blocks, float temperature, float p,
                  const Candidate& within);

// All that `last` keeps, in rank order.
std::vector<Candidate> RankedUpTo(const LogitBlocks& blocks,
                                  const Candidate& last);

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_CANDIDATES_H_
