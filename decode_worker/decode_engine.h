#ifndef BATON_DECODE_WORKER_DECODE_ENGINE_H_
#define BATON_DECODE_WORKER_DECODE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/worker/scheduler_driver.h"
#include "common/worker/step_driver.h"
#include "common/worker/worker.h"
#include "decode_worker/decode_scheduler.h"
#include "kv_transfer/transfer_thread.h"
#include "proto/decode.pb.h"

namespace baton::decode {

// What a decode worker has besides WorkerParts.
struct DecodeSettings {
  uint32_t max_sequences = 64;
  double landing_fraction = 0.5;
  Batching batching = Batching::kContinuous;
};

// A decode worker without its network side: a DecodeScheduler with a model,
// KV memory and a transport to act on. Owns an event loop, a compute thread and
// a transfer thread. Thread-safe.
class DecodeEngine {
 public:
  // Runs on the event loop; must only hand the event on.
  using OnEvent = std::function<void(SessionId, v1::DecodeEvent)>;

  DecodeEngine(WorkerParts parts, const DecodeSettings& settings,
               OnEvent on_event);
  // Finishes the step in flight, closes every link, then stops.
  ~DecodeEngine();

  // A SessionOpened, SessionLost, CommandReceived, DrainStarted or ShutDown.
  void Post(Event event) { driver_.Post(std::move(event)); }
  // Waits for the event loop; not from OnEvent.
  WorkerState state();

 private:
  void Execute(RunStep action);
  void Execute(OpenLanding action);
  void Execute(CancelLanding action);
  void Execute(SendEvent action);
  void OnStepDone(StepDone done);
  void OnTransferEvents(std::vector<transfer::TransferEvent> events);
  void Publish(const DecodeScheduler& scheduler);

  KvMemory* const memory_;
  WorkerMetrics* const metrics_;
  const OnEvent on_event_;
  SchedulerDriver<DecodeScheduler> driver_;
  transfer::TransferThread transfers_;
  StepDriver steps_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_ENGINE_H_
