#include "common/worker/worker_process.h"

#include <string>
#include <utility>

#include "common/base/core_dumps.h"
#include "common/base/host_port.h"
#include "common/base/process_start.h"
#include "common/base/ready_file.h"
#include "common/base/shutdown_requests.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/config/drain_warning.h"
#include "common/rpc/rpc_server.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/worker/worker.h"
#include "common/worker/worker_drain.h"

namespace baton {
namespace {

constexpr Duration kHealthInterval = std::chrono::milliseconds(500);

// Until a shutdown request: the gRPC health service tells what /readyz does.
void ServeUntilShutdown(Worker& worker, RpcServer& server,
                        ShutdownRequests& requests) {
  bool serving = true;
  do {
    const absl::Status readiness = worker.state().readiness;
    if (readiness.ok() == serving) continue;
    serving = readiness.ok();
    if (serving) {
      log::Info("healthy again");
    } else {
      log::Error("unhealthy, takes no new work: {}",
                 std::string(readiness.message()));
    }
    server.SetServing("", serving);
    server.SetServing(worker.service_name(), serving);
  } while (!requests.WaitAbove(0, MonotonicNow() + kHealthInterval));
}

// To be asked before the model is read, which takes long.
absl::Status CheckListen(const std::string& text) {
  BATON_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(text));
  return address.port == 0 ? absl::OkStatus() : ListenError(address);
}

// Returns only when the worker cannot start.
absl::Status Run(const WorkerOptions& options, const WorkerWiring& wiring,
                 ShutdownRequests& requests) {
  BATON_RETURN_IF_ERROR(CheckListen(options.listen));
  BATON_RETURN_IF_ERROR(CheckListen(options.admin));
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
  admin_options.live = [=] { return worker->state().liveness; };
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<AdminServer> admin,
                         AdminServer::Start(std::move(admin_options)));
  requests.StartServing();
  server->SetServing("", true);
  server->SetServing(worker->service_name(), true);
  if (!options.ready_file.empty()) {
    BATON_RETURN_IF_ERROR(WriteReadyFile(
        options.ready_file,
        {{"address", server->address()}, {"admin", admin->address()}}));
  }
  log::Info("{} serves on {}, admin on {}", options.worker_id,
            server->address(), admin->address());
  ServeUntilShutdown(*worker, *server, requests);
  const int code =
      DrainWorker(*worker, *server, requests, options.drain_timeout);
  admin.reset();
  if (code == 0) wired.worker.reset();  // else its end may take forever
  log::ExitProcess(code);
}

}  // namespace

int RunWorker(const WorkerOptions& options, const WorkerWiring& wiring) {
  ShutdownRequests requests;
  ShutdownSignals handler([&](int signal) { requests.Add(signal); });
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
  const std::string warning =
      DrainWarning(options.drain_timeout, kEndGrace, options.termination_grace);
  if (!warning.empty()) log::Warn("{}", warning);
  const absl::Status status = Run(options, wiring, requests);
  log::Error("cannot serve: {}", std::string(status.message()));
  return StartFailureCode(status);
}

}  // namespace baton
