#ifndef BATON_COMMON_WORKER_WORKER_HELLO_H_
#define BATON_COMMON_WORKER_WORKER_HELLO_H_

#include <string_view>

#include "common/base/ids.h"
#include "common/worker/served_model.h"
#include "common/worker/worker_options.h"
#include "kernels/api/backend.h"
#include "proto/cluster.pb.h"

namespace baton {

// How a worker introduces itself to routers, complete but for what only one
// kind of worker knows.
v1::WorkerHello MakeWorkerHello(const WorkerOptions& options,
                                v1::WorkerRole role, const ServedModel& served,
                                const kernels::Backend& backend,
                                WorkerEpoch epoch, std::string_view transport);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_HELLO_H_
