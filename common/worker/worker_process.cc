#include "common/worker/worker_process.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "common/base/core_dumps.h"
#include "common/base/process_start.h"
#include "common/base/ready_file.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/config/config_values.h"
#include "common/rpc/rpc_server.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/worker/worker.h"

namespace baton {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kShutDownGrace = std::chrono::seconds(2);
constexpr Duration kSessionGrace = std::chrono::milliseconds(500);

// Counts shutdown signals. Before the process serves, one ends it: nobody
// depends on it yet.
class SignalCount {
 public:
  void OnSignal(int signal) {
    std::lock_guard lock(mutex_);
    if (!serving_) std::_Exit(128 + signal);
    ++count_;
    changed_.notify_all();
  }
  void StartServing() {
    std::lock_guard lock(mutex_);
    serving_ = true;
  }
  // Until more than `count` signals came; false when `deadline` passed first.
  bool WaitAbove(int count, MonotonicTime deadline) {
    std::unique_lock lock(mutex_);
    auto above = [&] { return count_ > count; };
    if (deadline == kNever) {
      changed_.wait(lock, above);
      return true;
    }
    return changed_.wait_until(lock, deadline, above);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;         // mutex_
  bool serving_ = false;  // mutex_
};

// Waits until the worker is idle: true, or false at the deadline or when more
// than `signals` signals came.
bool WaitIdle(Worker& worker, SignalCount& signals, int count,
              MonotonicTime deadline) {
  while (!worker.state().idle) {
    const MonotonicTime now = MonotonicNow();
    if (now >= deadline) return false;
    if (signals.WaitAbove(count, std::min(deadline, now + kPollInterval))) {
      return false;
    }
  }
  return true;
}

int DrainAndCheck(Worker& worker, RpcServer& server, SignalCount& signals,
                  Duration drain_timeout) {
  log::Info("draining, at most {}", FormatDuration(drain_timeout));
  worker.Drain();
  server.SetServing(worker.service_name(), false);
  if (!WaitIdle(worker, signals, 1, MonotonicNow() + drain_timeout)) {
    log::Warn("ending unfinished work");
    worker.ShutDown();
    WaitIdle(worker, signals, 2, MonotonicNow() + kShutDownGrace);
  }
  worker.CloseSessions(absl::UnavailableError("the worker was drained"));
  server.Shutdown(kSessionGrace);
  const WorkerState state = worker.state();
  if (state.clean()) {
    log::Info("drained, every block is free");
    return 0;
  }
  log::Error("blocks are still in use: {}", state.ledger.ToString());
  return 1;
}

// Returns only when the worker cannot start.
absl::Status Run(const WorkerOptions& options, const WorkerWiring& wiring,
                 SignalCount& signals) {
  BATON_ASSIGN_OR_RETURN(WiredWorker wired, WireWorker(options, wiring));
  Worker* const worker = wired.worker.get();
  WorkerMetrics* const metrics = wired.metrics.get();

  ListenOptions listen;
  listen.address = options.listen;
  listen.insecure_any_address = options.insecure;
  listen.tls = wired.tls;
  listen.admitted = {PeerRole::kRouter};
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> server,
                         RpcServer::Start(listen, {worker->service()}));
  AdminServer::Options admin_options;
  admin_options.address = options.admin;
  admin_options.metrics = [=, tls = wired.tls] {
    metrics->PublishSessions(worker->sessions());
    if (tls != nullptr) tls->Publish(metrics->metrics());
    return metrics->Render();
  };
  admin_options.ready = [=] { return worker->state().readiness; };
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<AdminServer> admin,
                         AdminServer::Start(std::move(admin_options)));
  signals.StartServing();
  server->SetServing("", true);
  server->SetServing(worker->service_name(), true);
  if (!options.ready_file.empty()) {
    BATON_RETURN_IF_ERROR(WriteReadyFile(
        options.ready_file,
        {{"address", server->address()}, {"admin", admin->address()}}));
  }
  log::Info("{} serves on {}, admin on {}", options.worker_id,
            server->address(), admin->address());
  signals.WaitAbove(0, kNever);
  const int code =
      DrainAndCheck(*worker, *server, signals, options.drain_timeout);
  admin.reset();
  wired.worker.reset();
  log::ExitProcess(code);
}

}  // namespace

int RunWorker(const WorkerOptions& options, const WorkerWiring& wiring) {
  SignalCount signals;
  ShutdownSignals handler([&](int signal) { signals.OnSignal(signal); });
  log::LogOptions log_options;
  log_options.role = options.worker_id;
  if (auto level = log::ParseLevel(options.log_level); level.ok()) {
    log_options.level = *level;
  }
  log::InitLogging(log_options);
  if (!options.core_dumps) {
    const absl::Status forbidden = ForbidCoreDumps();
    if (!forbidden.ok()) log::Warn("{}", std::string(forbidden.message()));
  }
  const absl::Status status = Run(options, wiring, signals);
  log::Error("cannot serve: {}", std::string(status.message()));
  return StartFailureCode(status);
}

}  // namespace baton
