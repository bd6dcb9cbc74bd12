#ifndef BATON_PREFILL_WORKER_PREFILL_ENGINE_H_
#define BATON_PREFILL_WORKER_PREFILL_ENGINE_H_

#include <memory>

#include "common/worker/worker.h"
#include "common/worker/worker_engine.h"
#include "prefill_worker/prefill_metrics.h"
#include "prefill_worker/prefill_scheduler.h"

namespace baton::prefill {

// A prefill worker without its network side.
class PrefillEngine final : public WorkerEngine<PrefillScheduler> {
 public:
  PrefillEngine(WorkerParts parts, OnMessage on_message);

 private:
  PrefillEngine(WorkerParts&& parts, OnMessage on_message,
                std::shared_ptr<PrefillMetrics> metrics);
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_ENGINE_H_
