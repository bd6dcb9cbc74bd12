#ifndef BATON_DECODE_WORKER_DECODE_ENGINE_H_
#define BATON_DECODE_WORKER_DECODE_ENGINE_H_

#include <cstdint>

#include "common/base/monotonic_time.h"
#include "common/worker/worker.h"
#include "common/worker/worker_engine.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {

// What a decode worker has besides WorkerParts.
struct DecodeSettings {
  uint32_t max_sequences = 64;
  Duration tpot_target = Duration::zero();  // see BatchCap
  double landing_fraction = 0.5;
  Batching batching = Batching::kContinuous;
  Duration landing_timeout = std::chrono::seconds(120);
  uint32_t max_preemptions = 3;
  double length_quantile = 0.75;
  PreemptedReturn preempted_return = PreemptedReturn::kAuto;
  uint32_t forced_preemptions = 0;  // tests only; see DecodeOptions
  SpeculationOptions speculation = {};
};

// The rows that one of its steps may have.
uint32_t MaxStepRows(const DecodeSettings& settings, uint32_t step_tokens);

// A decode worker without its network side.
class DecodeEngine final : public WorkerEngine<DecodeScheduler> {
 public:
  DecodeEngine(WorkerParts parts, const DecodeSettings& settings,
               OnMessage on_message);
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_ENGINE_H_
