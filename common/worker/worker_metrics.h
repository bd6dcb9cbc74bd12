#ifndef BATON_COMMON_WORKER_WORKER_METRICS_H_
#define BATON_COMMON_WORKER_WORKER_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/telemetry/metrics.h"
#include "common/worker/process_memory.h"
#include "common/worker/step_plan.h"
#include "common/worker/worker_load.h"
#include "kv_transfer/transfer_core.h"
#include "proto/cluster.pb.h"

namespace baton {

inline constexpr size_t kStepCostParts = 6;

// The metrics of a worker process. Thread-safe.
class WorkerMetrics {
 public:
  WorkerMetrics(std::string role, std::string model);

  void OnStepPlanned(const StepPlan& plan);
  void OnStepDone(Duration elapsed);
  void OnTransferDone(Duration elapsed);
  void Publish(const Ledger& ledger, const WorkerCounters& counters,
               const transfer::TransferCore::Counters& transfers);
  // `load` is the report that goes to routers.
  void PublishCosts(const CostModel& costs, const v1::WorkerLoad& load,
                    uint32_t step_tokens);
  void PublishSessions(size_t sessions);
  void PublishMemory(const ProcessMemory& memory);

  Metrics* metrics() { return &metrics_; }
  std::string Render() const { return metrics_.Render(); }

 private:
  Metrics metrics_;
  std::array<prometheus::Gauge*, kBlockUses + 1> blocks_;  // last: free
  prometheus::Gauge& sessions_;
  prometheus::Gauge& resident_bytes_;
  prometheus::Gauge& huge_page_bytes_;
  prometheus::Counter& steps_;
  prometheus::Counter& prefill_tokens_;
  prometheus::Counter& decode_tokens_;
  prometheus::Counter& transfer_bytes_;
  prometheus::Counter& transfer_failures_;
  prometheus::Counter& stale_messages_;
  prometheus::Counter& refused_tickets_;
  prometheus::Counter& damaged_messages_;
  prometheus::Counter& cut_off_peers_;
  std::array<prometheus::Gauge*, kStepCostParts> step_costs_;
  prometheus::Gauge& step_prediction_error_;
  prometheus::Gauge& free_rows_;
  prometheus::Gauge& predicted_prefill_rate_;
  prometheus::Gauge& predicted_decode_step_;
  prometheus::Gauge& sequence_limit_;
  prometheus::Histogram& step_seconds_;
  prometheus::Histogram& batch_rows_;
  prometheus::Histogram& batch_sequences_;
  prometheus::Histogram& transfer_seconds_;
  std::mutex mutex_;  // counters only ever grow
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_METRICS_H_
