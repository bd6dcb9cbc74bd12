#ifndef BATON_COMMON_WORKER_WORKER_WIRING_H_
#define BATON_COMMON_WORKER_WORKER_WIRING_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/rpc/tls_credentials.h"
#include "common/worker/served_model.h"
#include "common/worker/worker.h"
#include "common/worker/worker_metrics.h"
#include "common/worker/worker_options.h"
#include "kernels/api/backend.h"
#include "kv_transfer/transport.h"
#include "proto/cluster.pb.h"

namespace baton {

// What only a main() knows: the concrete backend, transport and worker.
struct WorkerWiring {
  v1::WorkerRole role = v1::WORKER_ROLE_UNSPECIFIED;
  std::function<absl::StatusOr<std::unique_ptr<kernels::Backend>>(int threads)>
      make_backend;
  // `tls` is null without TLS.
  std::function<absl::StatusOr<std::unique_ptr<transfer::Transport>>(
      std::shared_ptr<const TlsCredentials> tls)>
      make_transport;
  // What else the worker needs of the model in memory; may be null.
  std::function<absl::Status(const ServedModel&, kernels::Backend*)>
      on_model_loaded;
  // `hello` is complete but for what only this kind of worker knows.
  std::function<std::unique_ptr<Worker>(WorkerParts parts, v1::WorkerHello)>
      make_worker;
};

// A worker and all that it stands on, in the order of dependence.
struct WiredWorker {
  std::shared_ptr<const TlsCredentials> tls;  // null without TLS
  std::unique_ptr<kernels::Backend> backend;
  ServedModel served;
  std::unique_ptr<WorkerMetrics> metrics;
  std::unique_ptr<Worker> worker;
};

// Chooses threads and pool, loads the model and joins the parts; what was
// chosen and why is on the log.
absl::StatusOr<WiredWorker> WireWorker(const WorkerOptions& options,
                                       const WorkerWiring& wiring);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_WIRING_H_
