#include "prefill_worker/prefill_engine.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "prefill_worker/prefill_metrics.h"

namespace baton::prefill {
namespace {

using Engine = WorkerEngine<PrefillScheduler>;

PrefillOptions OptionsOf(const WorkerParts& parts) {
  PrefillOptions options;
  options.epoch = parts.epoch;
  options.blocks = parts.memory->blocks();
  options.budget = {parts.step_tokens, parts.step_target};
  options.health = parts.health_options();
  options.costs = parts.costs;
  options.limits = parts.sequence_limits();
  options.vocabulary = parts.vocabulary;
  return options;
}

void Execute(Engine& engine, OpenTransfer action) {
  absl::StatusOr<TransferId> transfer =
      engine.transfers().OpenTransfer(action.ticket, action.deadline);
  engine.Answer(TransferOpened{action.job, std::move(transfer)});
}

void Execute(Engine& engine, PushBlock action) {
  engine.transfers().PushBlock(action.transfer, action.ordinal,
                               engine.memory().BlockSpan(action.block.id),
                               action.written_tokens);
}

void Execute(Engine& engine, SealTransfer action) {
  engine.transfers().Seal(action.transfer, std::move(action.seal));
}

void Execute(Engine& engine, AbortTransfer action) {
  engine.transfers().Abort(action.transfer);
}

Engine::OnMessage Watched(WorkerMetrics* metrics, Engine::OnMessage next) {
  if (metrics == nullptr) return next;
  const auto prefill = std::make_shared<PrefillMetrics>(metrics->metrics());
  return [prefill, next = std::move(next)](SessionId session,
                                           v1::PrefillEvent event) {
    prefill->Saw(event);
    next(session, std::move(event));
  };
}

}  // namespace

PrefillEngine::PrefillEngine(WorkerParts parts, OnMessage on_message)
    : WorkerEngine(std::move(parts), parts.step_tokens,
                   PrefillScheduler(OptionsOf(parts)),
                   Watched(parts.metrics, std::move(on_message)),
                   [](Engine& engine, auto action) {
                     Execute(engine, std::move(action));
                   }) {}

}  // namespace baton::prefill
