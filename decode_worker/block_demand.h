#ifndef BATON_DECODE_WORKER_BLOCK_DEMAND_H_
#define BATON_DECODE_WORKER_BLOCK_DEMAND_H_

#include <cstdint>

#include "common/worker/sequence_spec.h"

namespace baton::decode {

// The blocks of an attempt from the first row to its last possible token.
// Choices share the context's full blocks; its partial last block belongs to
// one of them and is copied for every other. The last token's own KV is never
// needed.
struct BlockDemand {
  uint32_t context = 0;     // prompt and replayed tokens, partial one too
  uint32_t shared = 0;      // full blocks of the context
  uint32_t per_choice = 0;  // table of one choice at its longest
  uint32_t growth = 0;      // all choices, besides the context
  uint32_t total() const { return context + growth; }

  static BlockDemand Of(const SequenceRequest& request);
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_BLOCK_DEMAND_H_
