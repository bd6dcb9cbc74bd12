#include "prefill_worker/prefill_engine.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace baton::prefill {
namespace {

using Engine = WorkerEngine<PrefillScheduler>;

PrefillOptions OptionsOf(const WorkerParts& parts) {
  PrefillOptions options;
  options.epoch = parts.epoch;
  options.fingerprint = parts.model->fingerprint();
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
  engine.Answer(TransferOpened{action.owner, std::move(transfer)});
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

Engine::OnMessage Watched(std::shared_ptr<PrefillMetrics> metrics,
                          Engine::OnMessage next) {
  if (metrics == nullptr) return next;
  return [metrics = std::move(metrics), next = std::move(next)](
             SessionId session, v1::PrefillEvent event) {
    metrics->Saw(event);
    next(session, std::move(event));
  };
}

std::function<void(const PrefillScheduler&)> PublishTo(
    std::shared_ptr<PrefillMetrics> metrics) {
  if (metrics == nullptr) return nullptr;
  return [metrics = std::move(metrics)](const PrefillScheduler& scheduler) {
    metrics->Publish(scheduler);
  };
}

std::shared_ptr<PrefillMetrics> MetricsOf(const WorkerParts& parts) {
  if (parts.metrics == nullptr) return nullptr;
  return std::make_shared<PrefillMetrics>(parts.metrics->metrics());
}

}  // namespace

PrefillEngine::PrefillEngine(WorkerParts parts, OnMessage on_message)
    : PrefillEngine(std::move(parts), std::move(on_message), MetricsOf(parts)) {
}

PrefillEngine::PrefillEngine(WorkerParts&& parts, OnMessage on_message,
                             std::shared_ptr<PrefillMetrics> metrics)
    : WorkerEngine(
          std::move(parts), parts.step_tokens,
          PrefillScheduler(OptionsOf(parts)),
          Watched(metrics, std::move(on_message)),
          [](Engine& engine, auto action) {
            Execute(engine, std::move(action));
          },
          PublishTo(metrics)) {}

}  // namespace baton::prefill
