#include "common/worker/step_driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/kv_cache/kv_lanes.h"

namespace baton {

namespace {

absl::Status ResolveSpan(PlannedSpan& span, const BlockPool& pool,
                         const KvMemory& memory, StepSpan* resolved) {
  resolved->tokens = std::move(span.tokens);
  resolved->drafted = span.drafted;
  resolved->first_position = span.first_position;
  resolved->draws = std::move(span.draws);
  resolved->blocks.reserve(span.blocks.size());
  for (const BlockRef& block : span.blocks) {
    BATON_RETURN_IF_ERROR(pool.Check(block));
    resolved->blocks.push_back(memory.Block(block.id));
  }
  return absl::OkStatus();
}

}  // namespace

StepDriver::StepDriver(const Model* model, KvMemory* memory, uint32_t max_rows,
                       OnDone on_done, DraftModelParts draft)
    : memory_(memory),
      engine_(model, max_rows),
      draft_memory_(draft.memory),
      draft_engine_(draft.model == nullptr
                        ? nullptr
                        : std::make_unique<Engine>(draft.model, max_rows)),
      on_done_(std::move(on_done)),
      thread_([this] { Loop(); }) {}

StepDriver::~StepDriver() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StepDriver::Run(StepPlan plan, const BlockPool& pool,
                     const BlockPool* draft_pool) {
  Step step;
  step.number = plan.number;
  step.results = plan.spans.size();
  step.refusal = Resolve(plan, pool, draft_pool, &step);
  {
    std::lock_guard lock(mutex_);
    BATON_CHECK(!next_.has_value());
    next_ = std::move(step);
  }
  wake_.notify_one();
}

absl::Status StepDriver::Resolve(StepPlan& plan, const BlockPool& pool,
                                 const BlockPool* draft_pool, Step* step) {
  for (PlannedSpan& span : plan.spans) {
    BATON_RETURN_IF_ERROR(
        ResolveSpan(span, pool, *memory_, &step->spans.emplace_back()));
  }
  for (PlannedDraft& draft : plan.drafts) {
    BATON_CHECK(draft_engine_ != nullptr && draft_pool != nullptr);
    step->verifying.push_back(draft.span);
    DraftSpan& resolved = step->drafts.emplace_back();
    resolved.count = draft.count;
    BATON_RETURN_IF_ERROR(
        ResolveSpan(draft.known, *draft_pool, *draft_memory_, &resolved.known));
  }
  for (const BlockRef& block : plan.draft_cleared) {
    BATON_RETURN_IF_ERROR(draft_pool->Check(block));
    step->draft_cleared.push_back(block.id);
  }
  for (const BlockStartCopy& copy : plan.draft_copies) {
    BATON_RETURN_IF_ERROR(draft_pool->Check(copy.from));
    BATON_RETURN_IF_ERROR(draft_pool->Check(copy.to));
    step->draft_copies.push_back({copy.from.id, copy.to.id, copy.positions});
  }
  for (const BlockRef& block : plan.cleared) {
    BATON_RETURN_IF_ERROR(pool.Check(block));
    step->cleared.push_back(block.id);
  }
  for (const BlockCopy& copy : plan.copies) {
    BATON_RETURN_IF_ERROR(pool.Check(copy.from));
    BATON_RETURN_IF_ERROR(pool.Check(copy.to));
    step->copies.emplace_back(copy.from.id, copy.to.id);
  }
  return absl::OkStatus();
}

void StepDriver::Loop() {
  pthread_setname_np(pthread_self(), "compute");
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || next_.has_value(); });
    if (!next_.has_value()) return;
    Step step = *std::exchange(next_, std::nullopt);
    lock.unlock();
    on_done_({step.number, Compute(step)});
    lock.lock();
  }
}

DraftRun StepDriver::MakeGuesses(Step& step) {
  for (const BlockId block : step.draft_cleared) draft_memory_->Clear(block);
  for (const Step::StartCopy& copy : step.draft_copies) {
    std::byte* const to = draft_memory_->Block(copy.to);
    const absl::Span<std::byte> source = draft_memory_->BlockSpan(copy.from);
    std::memcpy(to, source.data(), source.size());
    ClearPositions(draft_memory_->layout(), {&to, 1}, copy.positions,
                   kBlockTokens);
  }
  if (step.drafts.empty()) return {};
  DraftRun run = RunDrafts(draft_engine_.get(), step.drafts);
  for (size_t i = 0; i < step.drafts.size(); ++i) {
    const std::vector<TokenId>& guesses = run.spans[i].guesses;
    std::vector<TokenId>& tokens = step.spans[step.verifying[i]].tokens;
    tokens.insert(tokens.end(), guesses.begin(), guesses.end());
  }
  return run;
}

void StepDriver::ClearRejected(const Step& step, const StepResult& result) {
  for (size_t i = 0; i < step.spans.size(); ++i) {
    const StepSpan& span = step.spans[i];
    if (!span.drafted) continue;
    ClearPositions(memory_->layout(), span.blocks,
                   span.first_position + result.spans[i].draws.size(),
                   span.first_position + span.tokens.size());
  }
  for (size_t i = 0; i < step.drafts.size(); ++i) {
    const SpanResult& verified = result.spans[step.verifying[i]];
    if (verified.guesses == 0) continue;
    // The last guess was not computed.
    const uint64_t computed = verified.guesses - 1;
    const StepSpan& known = step.drafts[i].known;
    const uint64_t first = known.first_position + known.tokens.size();
    const uint64_t right = std::max<uint64_t>(verified.draws.size(), 1) - 1;
    ClearPositions(draft_memory_->layout(), known.blocks,
                   first + std::min(right, computed), first + computed);
  }
}

StepResult StepDriver::Compute(Step& step) {
  absl::Status failure = step.refusal;
  if (failure.ok()) {
    for (BlockId block : step.cleared) memory_->Clear(block);
    for (const auto& [from, to] : step.copies) {
      const absl::Span<std::byte> source = memory_->BlockSpan(from);
      std::memcpy(memory_->Block(to), source.data(), source.size());
    }
    DraftRun drafts = MakeGuesses(step);
    absl::StatusOr<StepResult> result = engine_.Step(step.spans);
    if (result.ok()) {
      ClearRejected(step, *result);
      result->draft_elapsed = std::move(drafts.elapsed);
      for (DraftRun::Span& draft : drafts.spans) {
        result->drafts.push_back(std::move(draft.status));
      }
      return *std::move(result);
    }
    failure = result.status();
  }
  StepResult result;
  const absl::Status status = absl::InternalError(
      StrCat("step ", step.number, " could not run: ", failure.ToString()));
  result.spans.resize(step.results);
  for (SpanResult& span : result.spans) span.status = status;
  return result;
}

}  // namespace baton
