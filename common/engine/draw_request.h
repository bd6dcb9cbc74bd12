#ifndef BATON_COMMON_ENGINE_DRAW_REQUEST_H_
#define BATON_COMMON_ENGINE_DRAW_REQUEST_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/sampling/sampling.h"
#include "common/tokens/token.h"

namespace baton {

// One draw from a row of logits. Everything is copied or shared so that the
// step owns what it reads.
struct DrawRequest {
  std::shared_ptr<const SamplingParams> params;
  TokenCounts counts;
  uint32_t choice = 0;
  uint64_t position = 0;        // see DrawContext
  std::vector<TokenId> banned;  // before position `banned_before`
  uint64_t banned_before = std::numeric_limits<uint64_t>::max();

  DrawContext context() const;
  // The draw one position later, once this one gave `token`.
  void Advance(TokenId token);
};

// Draws a token for each row until one differs from the row's draft: rows 0 to
// drafts.size(), row i comes before drafts[i]. The result, of at least one
// token, is what drawing and computing one by one would give: the drafts decide
// only how many there are. `sample` draws from row i; its first failure ends
// the run.
absl::StatusOr<std::vector<SampledToken>> DrawRun(
    DrawRequest draw, absl::Span<const TokenId> drafts,
    const std::function<absl::StatusOr<SampledToken>(
        size_t row, const DrawRequest& draw)>& sample);

}  // namespace baton

#endif  // BATON_COMMON_ENGINE_DRAW_REQUEST_H_
