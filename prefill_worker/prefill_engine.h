#ifndef BATON_PREFILL_WORKER_PREFILL_ENGINE_H_
#define BATON_PREFILL_WORKER_PREFILL_ENGINE_H_

#include <functional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/worker/scheduler_driver.h"
#include "common/worker/step_driver.h"
#include "common/worker/worker.h"
#include "kv_transfer/transfer_thread.h"
#include "prefill_worker/prefill_scheduler.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

// A prefill worker without its network side: a PrefillScheduler with a model,
// KV memory and a transport to act on. Owns an event loop, a compute thread and
// a transfer thread. Thread-safe.
class PrefillEngine {
 public:
  // Runs on the event loop; must only hand the event on.
  using OnEvent = std::function<void(SessionId, v1::PrefillEvent)>;

  PrefillEngine(WorkerParts parts, OnEvent on_event);
  // Finishes the step in flight, closes every link, then stops.
  ~PrefillEngine();

  // A SessionOpened, SessionLost, CommandReceived, DrainStarted or ShutDown.
  void Post(Event event) { driver_.Post(std::move(event)); }
  // Waits for the event loop; not from OnEvent.
  WorkerState state();

 private:
  void Execute(RunStep action);
  void Execute(OpenTransfer action);
  void Execute(PushBlock action);
  void Execute(SealTransfer action);
  void Execute(AbortTransfer action);
  void Execute(SendEvent action);
  void OnStepDone(StepDone done);
  void OnTransferEvents(std::vector<transfer::TransferEvent> events);
  void Publish(const PrefillScheduler& scheduler);

  KvMemory* const memory_;
  WorkerMetrics* const metrics_;
  const OnEvent on_event_;
  SchedulerDriver<PrefillScheduler> driver_;
  transfer::TransferThread transfers_;
  StepDriver steps_;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_ENGINE_H_
