#ifndef BATON_COMMON_WORKER_WORKER_H_
#define BATON_COMMON_WORKER_WORKER_H_

#include <grpcpp/impl/codegen/service_type.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"
#include "common/sequence/sequence.h"
#include "common/worker/compute_health.h"
#include "common/worker/sequence_spec.h"
#include "common/worker/step_driver.h"
#include "common/worker/worker_metrics.h"
#include "kv_transfer/transfer_thread.h"
#include "kv_transfer/transport.h"
#include "proto/cluster.pb.h"

namespace baton {

// What a worker of either kind is made of. The pointers outlive the worker.
struct WorkerParts {
  WorkerEpoch epoch;
  const Model* model = nullptr;
  KvMemory* memory = nullptr;
  DraftModelParts draft;  // decode workers
  std::shared_ptr<const Vocabulary> vocabulary;
  uint32_t max_context_tokens = 0;
  uint32_t step_tokens = 128;
  Duration step_target = Duration::zero();  // see StepBudget
  Duration step_timeout = std::chrono::seconds(60);
  std::optional<CostModel> costs;  // of a step; none: not predicted
  Duration loop_timeout = std::chrono::seconds(5);  // see Worker::state
  std::unique_ptr<transfer::Transport> transport;
  WorkerMetrics* metrics = nullptr;  // null: none
  bool poison_freed_blocks = false;  // see FreedBlocks

  transfer::TransferOptions transfer_options() const;
  SequenceLimits sequence_limits() const;
  ComputeHealth::Options health_options() const;
};

// Where a worker stands.
struct WorkerState {
  v1::WorkerLoad load;
  Ledger ledger;
  bool idle = false;       // nothing accepted is unfinished
  absl::Status readiness;  // not OK: why it takes no new work
  absl::Status liveness;   // not OK: why only a restart helps

  // No block is in use: free + prefix = pool.
  bool clean() const;
};

// A worker as its process sees it: something that serves router sessions and
// can be drained. Thread-safe.
class Worker {
 public:
  virtual ~Worker() = default;

  virtual grpc::Service* service() = 0;
  virtual std::string service_name() const = 0;  // "baton.v1.PrefillWorker"
  virtual size_t sessions() const = 0;
  // Waits for the worker's event loop; when that does not move, the state says
  // so and nothing else.
  virtual WorkerState state() = 0;

  // Takes no new work from now on.
  virtual void Drain() = 0;
  // Ends everything unfinished; the routers are told.
  virtual void ShutDown() = 0;
  // Ends the sessions when what is queued for them is written.
  virtual void CloseSessions(const absl::Status& status) = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_H_
