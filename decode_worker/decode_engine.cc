#include "decode_worker/decode_engine.h"

#include <cstddef>

#include "absl/status/status.h"

namespace baton::decode {
namespace {

DecodeOptions OptionsOf(const WorkerParts& parts,
                        const DecodeSettings& settings) {
  DecodeOptions options;
  options.epoch = parts.epoch;
  options.blocks = parts.memory->blocks();
  options.step_token_budget = parts.step_tokens;
  options.max_sequences = settings.max_sequences;
  options.landing_fraction = settings.landing_fraction;
  options.batching = settings.batching;
  options.transport = parts.transport->name();
  options.limits.max_context_tokens = parts.max_context_tokens;
  options.limits.vocabulary_size =
      static_cast<uint32_t>(parts.model->config().vocabulary);
  options.vocabulary = parts.vocabulary;
  return options;
}

}  // namespace

DecodeEngine::DecodeEngine(WorkerParts parts, const DecodeSettings& settings,
                           OnEvent on_event)
    : memory_(parts.memory),
      metrics_(parts.metrics),
      on_event_(std::move(on_event)),
      driver_(
          "decode", DecodeScheduler(OptionsOf(parts, settings)),
          [this](Action action) {
            std::visit([this](auto&& a) { Execute(std::move(a)); },
                       std::move(action));
          },
          [this](const DecodeScheduler& scheduler) { Publish(scheduler); }),
      transfers_(std::move(parts.transport), parts.transfer_options(),
                 [this](std::vector<transfer::TransferEvent> events) {
                   OnTransferEvents(std::move(events));
                 }),
      steps_(parts.model, parts.memory,
             settings.max_sequences + parts.step_tokens,
             [this](StepDone done) { OnStepDone(std::move(done)); }) {}

DecodeEngine::~DecodeEngine() { driver_.Stop(); }

WorkerState DecodeEngine::state() {
  return driver_.Ask([](const DecodeScheduler& scheduler) {
    WorkerState state;
    state.load = scheduler.Load();
    state.ledger = scheduler.pool().ledger();
    state.idle = scheduler.idle();
    if (scheduler.draining()) {
      state.readiness = absl::UnavailableError("draining");
    }
    return state;
  });
}

void DecodeEngine::Execute(RunStep action) {
  if (metrics_ != nullptr) metrics_->OnStepPlanned(action.plan);
  steps_.Run(std::move(action.plan), driver_.scheduler().pool());
}

void DecodeEngine::Execute(OpenLanding action) {
  if (action.token_count % kBlockTokens != 0) {
    memory_->Clear(action.blocks.back().id);
  }
  transfer::LandingSpec spec;
  for (const BlockRef& block : action.blocks) {
    spec.memory.push_back(memory_->Block(block.id));
  }
  spec.blocks = std::move(action.blocks);
  spec.token_count = action.token_count;
  spec.timeout = action.timeout;
  driver_.Feed(
      LandingOpened{action.job, transfers_.OpenLanding(std::move(spec))});
}

void DecodeEngine::Execute(CancelLanding action) {
  transfers_.CancelLanding(action.landing);
}

void DecodeEngine::Execute(SendEvent action) {
  on_event_(action.session, std::move(action.event));
}

void DecodeEngine::OnStepDone(StepDone done) {
  if (metrics_ != nullptr) metrics_->OnStepDone(done.result.elapsed);
  driver_.Post(std::move(done));
}

void DecodeEngine::OnTransferEvents(
    std::vector<transfer::TransferEvent> events) {
  for (transfer::TransferEvent& event : events) {
    auto* verified = std::get_if<transfer::LandingVerified>(&event);
    if (verified != nullptr && metrics_ != nullptr) {
      metrics_->OnTransferDone(verified->transfer_time);
    }
    driver_.Post(std::move(event));
  }
}

void DecodeEngine::Publish(const DecodeScheduler& scheduler) {
  if (metrics_ == nullptr) return;
  const DecodeScheduler::Counters& counters = scheduler.counters();
  WorkerTotals totals;
  totals.ledger = scheduler.pool().ledger();
  totals.steps = counters.steps;
  totals.prefill_tokens = counters.prefill_tokens;
  totals.decode_tokens = counters.decode_tokens;
  totals.transfer_failures = counters.transfer_failures;
  totals.stale_messages = counters.stale_messages;
  metrics_->Publish(totals, transfers_.counters());
}

}  // namespace baton::decode
