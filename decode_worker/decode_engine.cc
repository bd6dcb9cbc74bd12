#include "decode_worker/decode_engine.h"

#include <functional>
#include <memory>
#include <utility>

#include "decode_worker/decode_metrics.h"
#include "decode_worker/speculation/speculation_metrics.h"

namespace baton::decode {
namespace {

using Engine = WorkerEngine<DecodeScheduler>;

DecodeOptions OptionsOf(const WorkerParts& parts,
                        const DecodeSettings& settings) {
  DecodeOptions options;
  options.epoch = parts.epoch;
  options.blocks = parts.memory->blocks();
  options.budget = {parts.step_tokens, parts.step_target};
  options.max_sequences = settings.max_sequences;
  options.tpot_target = settings.tpot_target;
  options.landing_fraction = settings.landing_fraction;
  options.batching = settings.batching;
  options.landing_timeout = settings.landing_timeout;
  options.max_preemptions = settings.max_preemptions;
  options.length_quantile = settings.length_quantile;
  options.forced_preemptions = settings.forced_preemptions;
  options.preempted_return = settings.preempted_return;
  options.block_bytes = parts.memory->layout().block_bytes();
  options.fingerprint = parts.model->fingerprint();
  options.transport = parts.transport->name();
  options.health = parts.health_options();
  options.costs = parts.costs;
  options.speculation = settings.speculation;
  options.limits = parts.sequence_limits();
  options.vocabulary = parts.vocabulary;
  return options;
}

void Execute(Engine& engine, OpenLanding action) {
  KvMemory& memory = engine.memory();
  if (action.token_count % kBlockTokens != 0) {
    memory.Clear(action.blocks.back().id);
  }
  transfer::LandingSpec spec;
  for (const BlockRef& block : action.blocks) {
    spec.memory.push_back(memory.Block(block.id));
  }
  spec.blocks = std::move(action.blocks);
  spec.token_count = action.token_count;
  spec.timeout = action.timeout;
  engine.Answer(LandingOpened{action.job,
                              engine.transfers().OpenLanding(std::move(spec))});
}

void Execute(Engine& engine, CancelLanding action) {
  engine.transfers().CancelLanding(action.landing);
}

std::function<void(const DecodeScheduler&)> PublishTo(WorkerMetrics* metrics) {
  if (metrics == nullptr) return nullptr;
  auto decode = std::make_shared<DecodeMetrics>(metrics->metrics());
  auto speculation = std::make_shared<SpeculationMetrics>(metrics->metrics());
  return [decode, speculation](const DecodeScheduler& scheduler) {
    const MonotonicTime now = MonotonicNow();
    decode->Publish(scheduler, now);
    speculation->Publish(scheduler.counters().speculation,
                         scheduler.drafter_bytes(), now);
  };
}

}  // namespace

uint32_t MaxStepRows(const DecodeSettings& settings, uint32_t step_tokens) {
  return settings.max_sequences + step_tokens +
         settings.speculation.max_draft_rows;
}

DecodeEngine::DecodeEngine(WorkerParts parts, const DecodeSettings& settings,
                           OnMessage on_message)
    : WorkerEngine(
          std::move(parts), MaxStepRows(settings, parts.step_tokens),
          DecodeScheduler(OptionsOf(parts, settings)), std::move(on_message),
          [](Engine& engine, auto action) {
            Execute(engine, std::move(action));
          },
          PublishTo(parts.metrics)) {}

}  // namespace baton::decode
