#ifndef BATON_COMMON_WORKER_WORKER_ENGINE_H_
#define BATON_COMMON_WORKER_WORKER_ENGINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/strings.h"
#include "common/kv_cache/freed_blocks.h"
#include "common/kv_cache/kv_memory.h"
#include "common/worker/scheduler_driver.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/step_driver.h"
#include "common/worker/worker.h"
#include "common/worker/worker_metrics.h"
#include "kv_transfer/transfer_thread.h"

namespace baton {

// A worker without its network side: a scheduler with a model, KV memory and a
// transport to act on. Owns an event loop, a compute thread and a transfer
// thread. Thread-safe.
template <class Scheduler>
class WorkerEngine {
 public:
  using Event = typename Scheduler::Event;
  using Action = typename Scheduler::Action;
  using Command = typename Scheduler::Command;
  using Message = typename Scheduler::Message;
  // Runs on the event loop; must only hand the message on.
  using OnMessage = std::function<void(SessionId, Message)>;

  WorkerEngine(const WorkerEngine&) = delete;
  WorkerEngine& operator=(const WorkerEngine&) = delete;

  // A SessionOpened, SessionLost, CommandReceived, DrainStarted or ShutDown.
  void Post(Event event) { driver_.Post(std::move(event)); }

  // Waits for the event loop, not longer than `loop_timeout`: a loop that does
  // not move then makes the worker neither ready nor alive. Not from OnMessage.
  WorkerState state() {
    const auto read = [](const Scheduler& scheduler) {
      WorkerState state;
      state.load = scheduler.Load();
      state.ledger = scheduler.pool().ledger();
      state.idle = scheduler.idle();
      const std::string unhealthy = scheduler.health().WhyUnhealthy();
      if (scheduler.draining()) {
        state.readiness = absl::UnavailableError("draining");
      } else if (!unhealthy.empty()) {
        state.readiness = absl::InternalError(unhealthy);
      }
      if (scheduler.health().stalled()) {
        state.liveness = absl::InternalError(unhealthy);
      }
      return state;
    };
    if (auto state = driver_.AskFor(read, loop_timeout_)) return *state;
    WorkerState stuck;
    stuck.readiness = stuck.liveness =
        absl::InternalError(StrCat("the event loop stands still for ",
                                   Seconds(loop_timeout_), " s or longer"));
    return stuck;
  }

  // For `execute`, on the event loop.
  KvMemory& memory() { return *memory_; }
  transfer::TransferThread& transfers() { return transfers_; }
  void Answer(Event event) { driver_.Feed(std::move(event)); }

 protected:
  // `execute(engine, action)` carries out what only this kind of scheduler
  // asks for; it runs on the event loop, as does `publish` after events. A
  // step has at most `max_rows`.
  template <class Execute>
  WorkerEngine(WorkerParts&& parts, uint32_t max_rows, Scheduler scheduler,
               OnMessage on_message, Execute execute,
               std::function<void(const Scheduler&)> publish = nullptr)
      : memory_(parts.memory),
        freed_(parts.poison_freed_blocks
                   ? std::make_optional<FreedBlocks>(scheduler.pool())
                   : std::nullopt),
        metrics_(parts.metrics),
        on_message_(std::move(on_message)),
        publish_(std::move(publish)),
        loop_timeout_(parts.loop_timeout),
        step_tokens_(parts.step_tokens),
        driver_(
            Scheduler::Kind::kName, std::move(scheduler),
            [this, execute](Action action) {
              std::visit([&](auto&& one) { Carry(std::move(one), execute); },
                         std::move(action));
            },
            [this](const Scheduler& current) { AfterEvents(current); }),
        transfers_(std::move(parts.transport), parts.transfer_options(),
                   [this](std::vector<transfer::TransferEvent> events) {
                     OnTransferEvents(std::move(events));
                   }),
        steps_(
            parts.model, parts.memory, max_rows,
            [this](StepDone done) { OnStepDone(std::move(done)); },
            parts.draft) {
    // The metrics are true before the first event.
    driver_.Ask([this](const Scheduler& current) {
      AfterEvents(current);
      return true;
    });
  }
  // Finishes the step in flight, closes every link, then stops.
  ~WorkerEngine() { driver_.Stop(); }

 private:
  template <class One, class Execute>
  void Carry(One action, const Execute& execute) {
    if constexpr (std::is_same_v<One, RunStep>) {
      if (metrics_ != nullptr) metrics_->OnStepPlanned(action.plan);
      steps_.Run(std::move(action.plan), driver_.scheduler().pool(),
                 DraftPool(driver_.scheduler()));
    } else if constexpr (std::is_same_v<One, SendEvent<Message>>) {
      on_message_(action.session, std::move(action.event));
    } else {
      execute(*this, std::move(action));
    }
  }

  static const BlockPool* DraftPool(const Scheduler& scheduler) {
    if constexpr (requires { scheduler.draft_pool(); }) {
      return scheduler.draft_pool();
    }
    return nullptr;
  }

  void OnStepDone(StepDone done) {
    if (metrics_ != nullptr) metrics_->OnStepDone(done.result.elapsed);
    driver_.Post(std::move(done));
  }

  void OnTransferEvents(std::vector<transfer::TransferEvent> events) {
    for (transfer::TransferEvent& event : events) {
      auto* verified = std::get_if<transfer::LandingVerified>(&event);
      if (verified != nullptr && metrics_ != nullptr) {
        metrics_->OnTransferDone(verified->transfer_time);
      }
      driver_.Post(std::move(event));
    }
  }

  void AfterEvents(const Scheduler& scheduler) {
    if (freed_.has_value()) freed_->Poison(scheduler.pool(), *memory_);
    if (publish_ != nullptr) publish_(scheduler);
    if (metrics_ == nullptr) return;
    metrics_->Publish(scheduler.pool().ledger(), scheduler.counters(),
                      transfers_.counters());
    if (scheduler.costs().has_value()) {
      metrics_->PublishCosts(*scheduler.costs(), scheduler.Load(),
                             step_tokens_);
    }
  }

  KvMemory* const memory_;
  std::optional<FreedBlocks> freed_;  // debug builds; event loop
  WorkerMetrics* const metrics_;
  const OnMessage on_message_;
  const std::function<void(const Scheduler&)> publish_;
  const Duration loop_timeout_;
  const uint32_t step_tokens_;
  SchedulerDriver<Scheduler> driver_;
  transfer::TransferThread transfers_;
  StepDriver steps_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_ENGINE_H_
