// Part of WorkerProcess: steps on the compute thread.
#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "common/kv_cache/kv_lanes.h"
#include "tests/simulation/toy_model.h"
#include "tests/simulation/worker_process.h"

namespace baton::simulation {

CostModel WorkerShape::costs() const {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step :
       CostModel::Probes(step_token_budget, max_context_tokens)) {
    const double seconds = Seconds(step_time + row_time * step.rows());
    probes.push_back({std::move(step), seconds});
  }
  return CostModel(probes);
}

void WorkerProcess::StartStep(StepPlan plan) {
  if (step_ != nullptr) Violation("a second step was started");
  if (plan.number != last_step_ + 1) Violation("steps are not consecutive");
  if (plan.spans.empty() && plan.cleared.empty() && plan.copies.empty()) {
    Violation("an empty step");
  }
  last_step_ = plan.number;
  step_ = std::make_unique<StepPlan>(std::move(plan));
  CheckPlan(*step_);
  environment_.monitor->Count("steps");
  Duration work = shape_.step_time + shape_.row_time * step_->rows();
  if (random_.Chance(shape_.stall)) {
    environment_.monitor->Count("steps stalled");
    work += shape_.stall_time;
  }
  const Duration until_compute = random_.Between(Duration(1), work);
  Later(until_compute, [this, work, until_compute] {
    auto result = std::make_shared<StepResult>();
    if (CheckPlan(*step_)) Compute(*step_, result.get());
    Later(work - until_compute, [this, work, result] {
      const uint64_t number = step_->number;
      step_.reset();
      result->elapsed = work;
      AnswerOnMainThread(
          [this, number, result] { StepFinished(number, *result); });
    });
  });
}

void WorkerProcess::Compute(const StepPlan& plan, StepResult* result) {
  for (const BlockRef& block : plan.cleared) memory_->Clear(block.id);
  for (const BlockCopy& copy : plan.copies) {
    const auto from = memory_->BlockSpan(copy.from.id);
    std::copy(from.begin(), from.end(), memory_->Block(copy.to.id));
  }
  std::vector<StepSpan> spans;
  for (const PlannedSpan& planned : plan.spans) {
    spans.push_back(Resolve(planned, *memory_));
  }
  for (const BlockRef& block : plan.draft_cleared) {
    draft_memory_->Clear(block.id);
  }
  for (const BlockStartCopy& copy : plan.draft_copies) {
    const auto from = draft_memory_->BlockSpan(copy.from.id);
    std::byte* to = draft_memory_->Block(copy.to.id);
    std::copy(from.begin(), from.end(), to);
    ClearPositions(ToyKvLayout(), {&to, 1}, copy.positions, kBlockTokens);
    environment_.monitor->Count("draft blocks copied");
  }
  for (const PlannedDraft& draft : plan.drafts) {
    const std::vector<TokenId> guesses =
        Guess(draft, &result->drafts.emplace_back());
    std::vector<TokenId>& tokens = spans[draft.span].tokens;
    tokens.insert(tokens.end(), guesses.begin(), guesses.end());
  }
  if (absl::Status status = RunToyStep(spans, shape_.version, result);
      !status.ok()) {
    Violation(StrCat("step ", plan.number, ": ", ToStd(status.message())));
    result->spans.resize(plan.spans.size());
  }
  for (SpanResult& span : result->spans) {
    if (!random_.Chance(shape_.numeric_failure)) continue;
    environment_.monitor->Count("numeric failures");
    span.status = absl::InternalError("row 0: not finite");
    span.draws.clear();
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].drafted) continue;
    const size_t kept = result->spans[i].draws.size();
    environment_.monitor->Count("spans with guesses");
    if (kept > 1) environment_.monitor->Count("guesses accepted");
    ClearPositions(ToyKvLayout(), spans[i].blocks,
                   spans[i].first_position + kept,
                   spans[i].first_position + spans[i].tokens.size());
    for (const DraftKv& kv : draft_kv_) {
      if (kv.span != i) continue;
      const uint64_t right = std::max<size_t>(kept, 1) - 1;
      ClearPositions(ToyKvLayout(), kv.blocks, kv.first_guess + right, kv.end);
    }
  }
  draft_kv_.clear();
}

StepSpan WorkerProcess::Resolve(const PlannedSpan& planned,
                                const KvMemory& memory) {
  StepSpan span;
  span.tokens = planned.tokens;
  span.drafted = planned.drafted;
  span.first_position = planned.first_position;
  span.draws = planned.draws;
  for (const BlockRef& block : planned.blocks) {
    span.blocks.push_back(memory.Block(block.id));
  }
  return span;
}

std::vector<TokenId> WorkerProcess::Guess(const PlannedDraft& draft,
                                          absl::Status* failure) {
  std::vector<TokenId> guesses;
  StepSpan span = Resolve(draft.known, *draft_memory_);
  const uint64_t computed = span.first_position + span.tokens.size();
  do {
    if (shape_.numeric_failure > 0 && random_.Chance(shape_.numeric_failure)) {
      environment_.monitor->Count("draft failures");
      *failure = absl::InternalError("row 0: not finite");
      SpoilToyPositions(span.blocks, span.first_position,
                        span.first_position + span.tokens.size());
      return guesses;
    }
    StepResult result;
    if (absl::Status status = RunToyStep({&span, 1}, shape_.version, &result);
        !status.ok()) {
      Violation(StrCat("draft model: ", ToStd(status.message())));
      return {};
    }
    if (draft.count == 0) return {};
    TokenId guess = result.spans[0].draws.at(0).token;
    if (random_.Chance(shape_.wrong_guesses)) {
      guess = (guess + 1) % kToyVocabulary;
    }
    guesses.push_back(guess);
    span.first_position += static_cast<uint32_t>(span.tokens.size());
    span.tokens = {guess};
    span.draws.front().Advance(guess);
  } while (guesses.size() < draft.count);
  draft_kv_.push_back(
      {draft.span, computed, span.first_position, std::move(span.blocks)});
  return guesses;
}

}  // namespace baton::simulation
