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

// Waits until the worker is idle: true, or false at the deadline, when more
// than `count` shutdown requests came, or when only a restart helps. `state` is
// what it saw last.
bool WaitIdle(Worker& worker, ShutdownRequests& requests, int count,
              MonotonicTime deadline, WorkerState* state) {
  MonotonicTime next_report = MonotonicNow() + kReportInterval;
  while (true) {
    *state = worker.state();
    if (state->idle) return true;
    const MonotonicTime now = MonotonicNow();
    if (now >= deadline || !state->liveness.ok()) return false;
    if (now >= next_report) {
      ReportLeft(*state);
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
  WorkerState state;
  if (!WaitIdle(worker, requests, 1, MonotonicNow() + timeout, &state) &&
      state.liveness.ok()) {
    log::Warn("{}: ending unfinished work, other workers replay it",
              requests.count() > 1 ? "asked again" : "drain timeout");
    ReportLeft(state);
    worker.ShutDown();
    WaitIdle(worker, requests, 2, MonotonicNow() + kEndGrace - kSessionGrace,
             &state);
  }
  worker.CloseSessions(absl::UnavailableError("the worker was drained"));
  server.Shutdown(kSessionGrace);
  if (state.liveness.ok()) state = worker.state();
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
