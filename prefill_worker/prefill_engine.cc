#include "prefill_worker/prefill_engine.h"

#include <utility>

#include "absl/status/statusor.h"

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

}  // namespace

PrefillEngine::PrefillEngine(WorkerParts parts, OnMessage on_message)
    : WorkerEngine(std::move(parts), parts.step_tokens,
                   PrefillScheduler(OptionsOf(parts)), std::move(on_message),
                   [](Engine& engine, auto action) {
                     Execute(engine, std::move(action));
                   }) {}

}  // namespace baton::prefill
