#include "common/engine/draft_run.h"

#include <utility>

#include "common/base/status_macros.h"

namespace baton {

absl::StatusOr<DraftRun> RunDrafts(Engine* engine,
                                   absl::Span<const DraftSpan> spans) {
  DraftRun run;
  run.guesses.resize(spans.size());
  std::vector<StepSpan> pass;
  std::vector<size_t> of;  // spans of the pass
  for (size_t i = 0; i < spans.size(); ++i) {
    pass.push_back(spans[i].known);
    of.push_back(i);
  }
  while (!pass.empty()) {
    BATON_ASSIGN_OR_RETURN(StepResult result, engine->Step(pass));
    run.elapsed.push_back(result.elapsed);
    std::vector<StepSpan> next_pass;
    std::vector<size_t> next_of;
    for (size_t i = 0; i < pass.size(); ++i) {
      const SpanResult& drawn = result.spans[i];
      if (!drawn.status.ok() || drawn.draws.empty()) continue;
      std::vector<TokenId>& guesses = run.guesses[of[i]];
      guesses.push_back(drawn.draws.front().token);
      if (guesses.size() >= spans[of[i]].count) continue;
      StepSpan next = std::move(pass[i]);
      next.first_position += static_cast<uint32_t>(next.tokens.size());
      next.tokens = {guesses.back()};
      next.draws.front().Advance(guesses.back());
      next_pass.push_back(std::move(next));
      next_of.push_back(of[i]);
    }
    pass = std::move(next_pass);
    of = std::move(next_of);
  }
  return run;
}

}  // namespace baton
