#ifndef BATON_COMMON_WORKER_WORKER_PROCESS_H_
#define BATON_COMMON_WORKER_WORKER_PROCESS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/worker/worker.h"
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
  std::function<absl::StatusOr<std::unique_ptr<transfer::Transport>>()>
      make_transport;
  // `hello` is complete but for what only this kind of worker knows.
  std::function<std::unique_ptr<Worker>(WorkerParts parts, v1::WorkerHello)>
      make_worker;
};

// The life of a worker process: loads the model, serves, drains on SIGTERM or
// SIGINT, ends at once on the second. Returns the exit status: 0 when every
// block is free or cached at the end, else 1 with the ledger on the log; 1 also
// when it cannot start.
int RunWorker(const WorkerOptions& options, const WorkerWiring& wiring);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_PROCESS_H_
