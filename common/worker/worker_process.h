#ifndef BATON_COMMON_WORKER_WORKER_PROCESS_H_
#define BATON_COMMON_WORKER_WORKER_PROCESS_H_

#include "common/worker/worker_options.h"
#include "common/worker/worker_wiring.h"

namespace baton {

// The life of a worker process: loads the model, serves, drains on SIGTERM or
// SIGINT, ends at once on the second. Returns the exit status: that of
// DrainWorker, or 1 when it cannot start.
int RunWorker(const WorkerOptions& options, const WorkerWiring& wiring);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_PROCESS_H_
