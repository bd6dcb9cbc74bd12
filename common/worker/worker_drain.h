#ifndef BATON_COMMON_WORKER_WORKER_DRAIN_H_
#define BATON_COMMON_WORKER_WORKER_DRAIN_H_

#include "common/base/monotonic_time.h"
#include "common/base/shutdown_requests.h"
#include "common/rpc/rpc_server.h"
#include "common/worker/worker.h"

namespace baton {

// After the drain itself: closing transfers and telling the routers.
inline constexpr Duration kEndGrace = std::chrono::seconds(3);

// After the first shutdown request. Takes no new work, waits at most `timeout`
// for what was accepted, then, or at a second shutdown request, ends the rest
// with a status that lets the routers replay it elsewhere, closes the sessions
// when all is told, and the server. Needs at most `timeout` + kEndGrace.
// Returns the exit status of the process: 0, or kExitNotClean with the states
// of the blocks left on the log.
int DrainWorker(Worker& worker, RpcServer& server, ShutdownRequests& requests,
                Duration timeout);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_DRAIN_H_
