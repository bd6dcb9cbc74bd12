#include "router/front_door/router_drain.h"

#include "common/telemetry/log.h"

namespace baton::router {
namespace {

constexpr Duration kPoll = std::chrono::milliseconds(20);

}  // namespace

int DrainRouter(RouterDriver& driver, const std::function<uint64_t()>& calls,
                RpcServer& server, ShutdownRequests& requests,
                const RouterDrain& drain) {
  log::Info("draining: running requests have {} s", Seconds(drain.timeout));
  driver.Drain();
  const MonotonicTime end = MonotonicNow() + drain.timeout;
  const auto over = [&] {
    return MonotonicNow() >= end || requests.count() >= 2;
  };
  bool idle = false;
  while (!(idle = driver.WaitUntilIdle(kPoll)) && !over()) continue;
  if (!idle) {
    log::Warn("ending unfinished requests");
    driver.Terminate(absl::UnavailableError("router: shutting down"));
    idle = driver.WaitUntilIdle(drain.end);
  }
  while (!driver.WaitUntilTaken(kPoll) && !over()) continue;
  LingerUntilQuiet(calls, requests, drain.linger);
  driver.WaitUntilClosed(drain.flush);
  const uint64_t cut = driver.open_answers();
  server.Shutdown(drain.close);
  if (!idle) {
    log::Error("drained, but requests have not ended");
  } else if (cut > 0) {
    log::Error("drained, but {} answers were cut off that clients had not read",
               cut);
  } else {
    log::Info("drained, every request has ended");
  }
  return idle && cut == 0 ? 0 : kExitNotClean;
}

}  // namespace baton::router
