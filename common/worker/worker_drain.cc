#include "common/worker/worker_drain.h"

#include <algorithm>

#include "absl/status/status.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "common/telemetry/log.h"

namespace baton {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kReportInterval = std::chrono::seconds(5);
constexpr Duration kSessionGrace = std::chrono::milliseconds(500);

void ReportLeft(const WorkerState& state) {
  log::Info("draining: {} running and {} waiting answers, {}",
            state.load.running_sequences(), state.load.waiting_sequences(),
            state.ledger.ToString());
}

// Waits until the worker is idle: true, or false at the deadline or when more
// than `count` shutdown requests came.
bool WaitIdle(Worker& worker, ShutdownRequests& requests, int count,
              MonotonicTime deadline) {
  MonotonicTime next_report = MonotonicNow() + kReportInterval;
  while (true) {
    const WorkerState state = worker.state();
    if (state.idle) return true;
    const MonotonicTime now = MonotonicNow();
    if (now >= deadline) return false;
    if (now >= next_report) {
      ReportLeft(state);
      next_report = now + kReportInterval;
    }
    if (requests.WaitAbove(count, std::min(deadline, now + kPollInterval))) {
      return false;
    }
  }
}

}  // namespace

int DrainWorker(Worker& worker, RpcServer& server, ShutdownRequests& requests,
                Duration timeout) {
  log::Info("draining, at most {}", FormatDuration(timeout));
  server.SetServing("", false);
  server.SetServing(worker.service_name(), false);
  worker.Drain();
  if (!WaitIdle(worker, requests, 1, MonotonicNow() + timeout)) {
    log::Warn("{}: ending unfinished work, other workers replay it",
              requests.count() > 1 ? "asked again" : "drain timeout");
    ReportLeft(worker.state());
    worker.ShutDown();
    WaitIdle(worker, requests, 2, MonotonicNow() + kEndGrace - kSessionGrace);
  }
  worker.CloseSessions(absl::UnavailableError("the worker was drained"));
  server.Shutdown(kSessionGrace);
  const WorkerState state = worker.state();
  if (state.liveness.ok() && state.clean()) {
    log::Info("drained, every block is free or cached: {}",
              state.ledger.ToString());
    return 0;
  }
  log::Error("drained, but not clean, blocks are left: {}",
             state.ledger.ToString());
  return kExitNotClean;
}

}  // namespace baton
