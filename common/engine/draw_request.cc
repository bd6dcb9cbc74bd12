#include "common/engine/draw_request.h"

#include <utility>

#include "common/base/mutants.h"

namespace baton {

DrawContext DrawRequest::context() const {
  DrawContext context{.choice = choice, .position = position, .banned = {}};
  if (position < banned_before) context.banned = banned;
  return context;
}

void DrawRequest::Advance(TokenId token) {
  counts.AddOutput(token);
  ++position;
}

absl::StatusOr<std::vector<SampledToken>> DrawRun(
    DrawRequest draw, absl::Span<const TokenId> drafts,
    const std::function<absl::StatusOr<SampledToken>(
        size_t row, const DrawRequest& draw)>& sample) {
  std::vector<SampledToken> run;
  for (size_t row = 0; row <= drafts.size(); ++row) {
    absl::StatusOr<SampledToken> drawn = sample(row, draw);
    if (!drawn.ok()) return drawn.status();
    const TokenId token = drawn->token;
    run.push_back(*std::move(drawn));
    if (row == drafts.size()) break;
    if (token != drafts[row] && !BATON_MUTANT("draft_not_compared")) break;
    draw.Advance(token);
  }
  return run;
}

}  // namespace baton
