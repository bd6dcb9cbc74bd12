#include "tests/simulation/prefill_process.h"

#include <utility>
#include <variant>
#include <vector>

#include "tests/simulation/toy_model.h"

namespace baton::simulation {
namespace {

prefill::PrefillOptions OptionsFor(WorkerEpoch epoch,
                                   const WorkerShape& shape) {
  prefill::PrefillOptions options;
  options.epoch = epoch;
  options.fingerprint = shape.fingerprint();
  options.blocks = shape.blocks;
  options.budget = {shape.step_token_budget, shape.step_target};
  options.costs = shape.costs();
  options.health.probe_interval = std::chrono::seconds(10);
  options.limits.max_context_tokens = shape.max_context_tokens;
  options.limits.vocabulary_size = kToyVocabulary;
  options.vocabulary = ToyVocabulary();
  return options;
}

}  // namespace

PrefillProcess::PrefillProcess(Environment environment, Random random,
                               std::string name, WorkerEpoch epoch,
                               const WorkerShape& shape,
                               std::function<void()> on_death)
    : WorkerProcess(environment, random, std::move(name), epoch, shape,
                    std::move(on_death)),
      scheduler_(OptionsFor(epoch, shape)),
      sessions_(
          Hello(v1::WORKER_ROLE_PREFILL),
          [this](EventQueue::Task task) { OnMainThread(std::move(task)); },
          {.opened = [this](SessionId id) { Handle(SessionOpened{id}); },
           .lost = [this](SessionId id) { Handle(SessionLost{id}); },
           .received =
               [this](SessionId id, v1::PrefillCommand command) {
                 Handle(prefill::CommandReceived{id, std::move(command)});
               }}) {}

void PrefillProcess::Accept(std::shared_ptr<PrefillStream> stream) {
  sessions_.Accept(std::move(stream));
}

void PrefillProcess::Handle(prefill::Event event) {
  std::vector<prefill::Action> actions =
      scheduler_.Handle(std::move(event), Now());
  actions.resize(Surviving(actions.size()));
  for (prefill::Action& action : actions) {
    std::visit([this](auto&& a) { Do(std::move(a)); }, std::move(action));
  }
  if (dead()) return;
  WakeAt(scheduler_.NextDeadline());
  CheckAll();
  if (sessions_.empty()) CheckIdleForNobody();
}

void PrefillProcess::Do(RunStep action) {
  if (sessions_.empty()) Violation("starts a step for nobody");
  StartStep(std::move(action.plan));
}

void PrefillProcess::Do(prefill::OpenTransfer action) {
  OpenTransfer(
      std::move(action.ticket), action.deadline,
      [this, owner = action.owner](absl::StatusOr<TransferId> transfer) {
        Handle(prefill::TransferOpened{owner, transfer});
      });
}

void PrefillProcess::Do(prefill::PushBlock action) {
  PushBlock(action.transfer, action.ordinal, action.block,
            action.written_tokens);
}

void PrefillProcess::Do(prefill::SealTransfer action) {
  Seal(action.transfer, std::move(action.seal));
}

void PrefillProcess::Do(prefill::AbortTransfer action) {
  Abort(action.transfer);
}

void PrefillProcess::Do(prefill::SendEvent action) {
  sessions_.Send(action.session, std::move(action.event));
}

void PrefillProcess::StepFinished(uint64_t number, StepResult result) {
  Handle(StepDone{number, std::move(result)});
}

void PrefillProcess::TransferHappened(transfer::TransferEvent event) {
  Handle(std::move(event));
}

}  // namespace baton::simulation
