#include "prefill_worker/prefill_engine.h"

#include <utility>

#include "absl/status/status.h"

namespace baton::prefill {
namespace {

PrefillOptions OptionsOf(const WorkerParts& parts) {
  PrefillOptions options;
  options.epoch = parts.epoch;
  options.blocks = parts.memory->blocks();
  options.step_token_budget = parts.step_tokens;
  options.limits.max_context_tokens = parts.max_context_tokens;
  options.limits.vocabulary_size =
      static_cast<uint32_t>(parts.model->config().vocabulary);
  options.vocabulary = parts.vocabulary;
  return options;
}

}  // namespace

PrefillEngine::PrefillEngine(WorkerParts parts, OnEvent on_event)
    : memory_(parts.memory),
      metrics_(parts.metrics),
      on_event_(std::move(on_event)),
      driver_(
          "prefill", PrefillScheduler(OptionsOf(parts)),
          [this](Action action) {
            std::visit([this](auto&& a) { Execute(std::move(a)); },
                       std::move(action));
          },
          [this](const PrefillScheduler& scheduler) { Publish(scheduler); }),
      transfers_(std::move(parts.transport), parts.transfer_options(),
                 [this](std::vector<transfer::TransferEvent> events) {
                   OnTransferEvents(std::move(events));
                 }),
      steps_(parts.model, parts.memory, parts.step_tokens,
             [this](StepDone done) { OnStepDone(std::move(done)); }) {}

PrefillEngine::~PrefillEngine() { driver_.Stop(); }

WorkerState PrefillEngine::state() {
  return driver_.Ask([](const PrefillScheduler& scheduler) {
    WorkerState state;
    state.load = scheduler.Load();
    state.ledger = scheduler.pool().ledger();
    state.idle = scheduler.idle();
    if (scheduler.draining()) {
      state.readiness = absl::UnavailableError("draining");
    } else if (!scheduler.healthy()) {
      state.readiness =
          absl::InternalError("three prompts in a row gave NaN or infinity");
    }
    return state;
  });
}

void PrefillEngine::Execute(RunStep action) {
  if (metrics_ != nullptr) metrics_->OnStepPlanned(action.plan);
  steps_.Run(std::move(action.plan), driver_.scheduler().pool());
}

void PrefillEngine::Execute(OpenTransfer action) {
  absl::StatusOr<TransferId> transfer =
      transfers_.OpenTransfer(action.ticket, action.deadline);
  driver_.Feed(TransferOpened{action.job, std::move(transfer)});
}

void PrefillEngine::Execute(PushBlock action) {
  transfers_.PushBlock(action.transfer, action.ordinal,
                       memory_->BlockSpan(action.block.id),
                       action.written_tokens);
}

void PrefillEngine::Execute(SealTransfer action) {
  transfers_.Seal(action.transfer, std::move(action.seal));
}

void PrefillEngine::Execute(AbortTransfer action) {
  transfers_.Abort(action.transfer);
}

void PrefillEngine::Execute(SendEvent action) {
  on_event_(action.session, std::move(action.event));
}

void PrefillEngine::OnStepDone(StepDone done) {
  if (metrics_ != nullptr) metrics_->OnStepDone(done.result.elapsed);
  driver_.Post(std::move(done));
}

void PrefillEngine::OnTransferEvents(
    std::vector<transfer::TransferEvent> events) {
  for (transfer::TransferEvent& event : events) driver_.Post(std::move(event));
}

void PrefillEngine::Publish(const PrefillScheduler& scheduler) {
  if (metrics_ == nullptr) return;
  const PrefillScheduler::Counters& counters = scheduler.counters();
  WorkerTotals totals;
  totals.ledger = scheduler.pool().ledger();
  totals.steps = counters.steps;
  totals.prefill_tokens = counters.prompt_tokens;
  totals.transfer_failures = counters.transfer_failures;
  totals.stale_messages = counters.stale_messages;
  metrics_->Publish(totals, transfers_.counters());
}

}  // namespace baton::prefill
