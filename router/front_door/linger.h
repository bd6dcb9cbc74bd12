#ifndef BATON_ROUTER_FRONT_DOOR_LINGER_H_
#define BATON_ROUTER_FRONT_DOOR_LINGER_H_

#include <chrono>
#include <cstdint>
#include <functional>

#include "common/base/monotonic_time.h"
#include "common/base/shutdown_requests.h"

namespace baton::router {

struct Linger {
  Duration quiet = std::chrono::milliseconds(300);
  Duration longest = std::chrono::seconds(2);
};

// gRPC ends a call that crosses its shutdown as CANCELLED, without a word. So a
// router that has drained goes on to refuse callers as UNAVAILABLE until they
// have gone elsewhere: until `calls`, their number so far, has not changed for
// a quiet time, until the longest time is over, or until a second shutdown
// request, which is not waited for when it has come before.
void LingerUntilQuiet(const std::function<uint64_t()>& calls,
                      ShutdownRequests& requests, Linger linger);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_LINGER_H_
