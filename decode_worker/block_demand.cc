#include "decode_worker/block_demand.h"

#include "common/tokens/token.h"

namespace baton::decode {

BlockDemand BlockDemand::Of(const SequenceRequest& request) {
  const uint64_t tokens = request.context_tokens;
  const uint64_t longest =
      request.params->prompt.size() + request.params->max_tokens - 1;
  const uint32_t choices = static_cast<uint32_t>(request.choices.size());
  BlockDemand demand;
  demand.context = BlocksFor(tokens);
  demand.shared = static_cast<uint32_t>(tokens / kBlockTokens);
  demand.per_choice = BlocksFor(longest);
  demand.growth = (demand.per_choice - demand.context) +
                  (choices - 1) * (demand.per_choice - demand.shared);
  return demand;
}

}  // namespace baton::decode
