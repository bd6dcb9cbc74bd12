#include "common/worker/step_driver.h"

#include <pthread.h>

#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/kv_cache/kv_lanes.h"

namespace baton {

StepDriver::StepDriver(const Model* model, KvMemory* memory, uint32_t max_rows,
                       OnDone on_done)
    : memory_(memory),
      engine_(model, max_rows),
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

void StepDriver::Run(StepPlan plan, const BlockPool& pool) {
  Step step;
  step.number = plan.number;
  step.results = plan.spans.size();
  step.refusal = Resolve(plan, pool, &step);
  {
    std::lock_guard lock(mutex_);
    BATON_CHECK(!next_.has_value());
    next_ = std::move(step);
  }
  wake_.notify_one();
}

absl::Status StepDriver::Resolve(StepPlan& plan, const BlockPool& pool,
                                 Step* step) {
  for (PlannedSpan& span : plan.spans) {
    StepSpan resolved;
    resolved.tokens = std::move(span.tokens);
    resolved.drafted = span.drafted;
    resolved.first_position = span.first_position;
    resolved.draws = std::move(span.draws);
    resolved.blocks.reserve(span.blocks.size());
    for (const BlockRef& block : span.blocks) {
      BATON_RETURN_IF_ERROR(pool.Check(block));
      resolved.blocks.push_back(memory_->Block(block.id));
    }
    step->spans.push_back(std::move(resolved));
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
    const Step step = *std::exchange(next_, std::nullopt);
    lock.unlock();
    on_done_({step.number, Compute(step)});
    lock.lock();
  }
}

void StepDriver::ClearRejected(absl::Span<const StepSpan> spans,
                               const StepResult& result) {
  for (size_t i = 0; i < spans.size(); ++i) {
    const StepSpan& span = spans[i];
    if (!span.drafted) continue;
    ClearPositions(memory_->layout(), span.blocks,
                   span.first_position + result.spans[i].draws.size(),
                   span.first_position + span.tokens.size());
  }
}

StepResult StepDriver::Compute(const Step& step) {
  absl::Status failure = step.refusal;
  if (failure.ok()) {
    for (BlockId block : step.cleared) memory_->Clear(block);
    for (const auto& [from, to] : step.copies) {
      const absl::Span<std::byte> source = memory_->BlockSpan(from);
      std::memcpy(memory_->Block(to), source.data(), source.size());
    }
    absl::StatusOr<StepResult> result = engine_.Step(step.spans);
    if (result.ok()) {
      ClearRejected(step.spans, *result);
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
