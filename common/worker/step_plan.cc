#include "common/worker/step_plan.h"

#include <memory>
#include <utility>

#include "common/base/mutants.h"

namespace baton {

StepShape ShapeOf(const StepPlan& plan) {
  StepShape step;
  for (const PlannedSpan& span : plan.spans) {
    step.spans.push_back(
        {span.first_position, static_cast<uint32_t>(span.tokens.size())});
    if (span.drafted) {
      step.logit_rows += static_cast<uint32_t>(span.tokens.size());
    } else if (!span.draws.empty()) {
      ++step.logit_rows;
    }
  }
  for (const PlannedDraft& draft : plan.drafts) {
    step.spans[draft.span].rows += draft.count;
    step.logit_rows += draft.count;
  }
  return step;
}

void AddPromptSpan(const SequenceRequest& request, uint32_t first,
                   uint32_t count, bool draw,
                   const std::vector<BlockRef>& blocks, StepPlan* plan) {
  const uint32_t end = first + count;
  const auto begin = blocks.begin();
  plan->cleared.insert(plan->cleared.end(), begin + BlocksFor(first),
                       begin + BlocksFor(end));
  PlannedSpan span;
  span.first_position = first;
  span.blocks.assign(begin, begin + BlocksFor(end));
  for (uint32_t position = first; position < end; ++position) {
    span.tokens.push_back(request.ContextToken(position));
  }
  if (draw) {
    for (const Sequence& choice : request.choices) {
      span.draws.push_back(NextDrawOf(choice, request.params));
      if (BATON_MUTANT("replay_shifts_penalties") &&
          !choice.generated().empty()) {
        span.draws.back().counts = {};
      }
    }
  }
  plan->spans.push_back(std::move(span));
}

StepPlan ProbePlan(const std::vector<BlockRef>& block) {
  StepPlan plan;
  plan.cleared = block;
  PlannedSpan span;
  span.tokens = {TokenId{0}};
  span.blocks = block;
  DrawRequest draw;
  draw.params = std::make_shared<const SamplingParams>();
  draw.position = 1;
  span.draws.push_back(std::move(draw));
  plan.spans.push_back(std::move(span));
  return plan;
}

}  // namespace baton
