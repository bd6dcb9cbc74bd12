#include "common/engine/draft_run.h"

#include <utility>

namespace baton {

DraftRun RunDrafts(Engine* engine, absl::Span<const DraftSpan> spans) {
  DraftRun run;
  run.spans.resize(spans.size());
  std::vector<StepSpan> pass;
  std::vector<size_t> of;  // spans of the pass
  for (size_t i = 0; i < spans.size(); ++i) {
    pass.push_back(spans[i].known);
    of.push_back(i);
  }
  while (!pass.empty()) {
    absl::StatusOr<StepResult> result = engine->Step(pass);
    if (!result.ok()) {
      for (const size_t i : of) run.spans[i].status = result.status();
      break;
    }
    run.elapsed.push_back(result->elapsed);
    std::vector<StepSpan> next_pass;
    std::vector<size_t> next_of;
    for (size_t i = 0; i < pass.size(); ++i) {
      DraftRun::Span& one = run.spans[of[i]];
      SpanResult& drawn = result->spans[i];
      one.status = std::move(drawn.status);
      if (!one.status.ok() || drawn.draws.empty()) continue;
      one.guesses.push_back(drawn.draws.front().token);
      if (one.guesses.size() >= spans[of[i]].count) continue;
      StepSpan next = std::move(pass[i]);
      next.first_position += static_cast<uint32_t>(next.tokens.size());
      next.tokens = {one.guesses.back()};
      next.draws.front().Advance(one.guesses.back());
      next_pass.push_back(std::move(next));
      next_of.push_back(of[i]);
    }
    pass = std::move(next_pass);
    of = std::move(next_of);
  }
  return run;
}

}  // namespace baton
