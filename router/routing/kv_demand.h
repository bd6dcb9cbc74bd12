#ifndef BATON_ROUTER_ROUTING_KV_DEMAND_H_
#define BATON_ROUTER_ROUTING_KV_DEMAND_H_

#include <cstdint>

#include "common/tokens/token.h"

namespace baton::router {

// KV blocks that choices of one request can need on a decode worker, from the
// first row to their last possible token: they share the context's full
// blocks, and the last token's own KV is never needed. `max_tokens` counts
// from the end of the prompt, `context_tokens` may hold some of them already.
inline uint64_t KvBlocksFor(uint64_t prompt_tokens, uint64_t context_tokens,
                            uint64_t max_tokens, uint64_t choices) {
  const uint64_t longest =
      (prompt_tokens + max_tokens - 1 + kBlockTokens - 1) / kBlockTokens;
  const uint64_t shared = context_tokens / kBlockTokens;
  return longest + (choices - 1) * (longest - shared);
}

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_KV_DEMAND_H_
