#ifndef BATON_ROUTER_FRONT_DOOR_ROUTER_DRAIN_H_
#define BATON_ROUTER_FRONT_DOOR_ROUTER_DRAIN_H_

#include <chrono>
#include <cstdint>
#include <functional>

#include "common/base/monotonic_time.h"
#include "common/base/shutdown_requests.h"
#include "common/rpc/rpc_server.h"
#include "router/front_door/linger.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

struct RouterDrain {
  // For requests that run, and for clients to take the answers of those that
  // have ended.
  Duration timeout = std::chrono::seconds(30);
  // After that: for requests to end that were told to, callers to go
  // elsewhere, last words to be sent, and idle connections, whose clients may
  // take seconds to notice, to be closed.
  Duration end = std::chrono::seconds(2);
  Linger linger{};
  Duration flush = std::chrono::seconds(5);
  Duration close = std::chrono::milliseconds(100);
  Duration after() const { return end + linger.longest + flush + close; }
};

// After the first shutdown request; a second one ends the timeout. `calls`: see
// LingerUntilQuiet. Returns the exit status of the process: 0, or kExitNotClean
// when requests are left or answers were cut off, which the log tells.
int DrainRouter(RouterDriver& driver, const std::function<uint64_t()>& calls,
                RpcServer& server, ShutdownRequests& requests,
                const RouterDrain& drain);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_ROUTER_DRAIN_H_
