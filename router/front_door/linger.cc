#include "router/front_door/linger.h"

#include <algorithm>

namespace baton::router {

void LingerUntilQuiet(const std::function<uint64_t()>& calls,
                      ShutdownRequests& requests, Linger linger) {
  const MonotonicTime end = MonotonicNow() + linger.longest;
  uint64_t seen = 0;
  do {
    seen = calls();
    const MonotonicTime quiet = MonotonicNow() + linger.quiet;
    if (requests.WaitAbove(1, std::min(quiet, end))) return;
  } while (calls() != seen && MonotonicNow() < end);
}

}  // namespace baton::router
