// A prefill and a decode worker in one process: KV crosses by the loopback
// transport, everything else is as in the two real binaries. Ready file:
// {"address": prefill, "decode": decode, "admin": both}.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "common/base/ready_file.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/config/config_parser.h"
#include "common/rpc/rpc_server.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/worker/worker.h"
#include "common/worker/worker_options.h"
#include "common/worker/worker_wiring.h"
#include "decode_worker/decode_worker.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/loopback/loopback_transport.h"
#include "prefill_worker/prefill_worker.h"

namespace baton {
namespace {

class Stop {
 public:
  void Set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

WorkerWiring WiringOf(const WorkerOptions& options, v1::WorkerRole role,
                      transfer::LoopbackHub* hub) {
  WorkerWiring wiring;
  wiring.role = role;
  wiring.make_backend =
      [isa = options.isa](
          int threads) -> absl::StatusOr<std::unique_ptr<kernels::Backend>> {
    BATON_ASSIGN_OR_RETURN(const kernels::Isa chosen, kernels::ParseIsa(isa));
    return kernels::MakeCpuBackend({.isa = chosen, .threads = threads});
  };
  wiring.make_transport = [hub](std::shared_ptr<const TlsCredentials>) {
    return hub->MakeTransport();
  };
  if (role == v1::WORKER_ROLE_PREFILL) {
    wiring.make_worker = [](WorkerParts parts, v1::WorkerHello hello) {
      return std::make_unique<prefill::PrefillWorker>(std::move(parts),
                                                      std::move(hello));
    };
  } else {
    wiring.make_worker = [](WorkerParts parts, v1::WorkerHello hello) {
      const decode::DecodeSettings settings;
      hello.set_max_sequences(settings.max_sequences);
      hello.set_disaggregation(v1::DISAGGREGATION_ALWAYS);
      return std::make_unique<decode::DecodeWorker>(std::move(parts),
                                                    std::move(hello), settings);
    };
  }
  return wiring;
}

// One worker with its server.
struct Half {
  WiredWorker wired;
  std::unique_ptr<RpcServer> server;

  absl::Status Start(const WorkerOptions& options, v1::WorkerRole role,
                     transfer::LoopbackHub* hub) {
    BATON_ASSIGN_OR_RETURN(wired,
                           WireWorker(options, WiringOf(options, role, hub)));
    BATON_ASSIGN_OR_RETURN(server, RpcServer::Start({.address = "127.0.0.1:0"},
                                                    {wired.worker->service()}));
    server->SetServing(wired.worker->service_name(), true);
    return absl::OkStatus();
  }

  bool Drain() {
    Worker* const worker = wired.worker.get();
    worker->Drain();
    const MonotonicTime end = MonotonicNow() + std::chrono::seconds(10);
    while (!worker->state().idle && MonotonicNow() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    worker->CloseSessions(absl::UnavailableError("drained"));
    server->Shutdown(std::chrono::milliseconds(500));
    const bool clean = worker->state().clean();
    wired.worker.reset();
    return clean;
  }
};

// Returns only when the pair cannot start.
absl::Status Serve(WorkerOptions options, Stop* stop) {
  transfer::LoopbackHub hub;
  Half prefill, decode;
  options.worker_id = "prefill-0";
  BATON_RETURN_IF_ERROR(prefill.Start(options, v1::WORKER_ROLE_PREFILL, &hub));
  options.worker_id = "decode-0";
  BATON_RETURN_IF_ERROR(decode.Start(options, v1::WORKER_ROLE_DECODE, &hub));
  AdminServer::Options admin_options;
  admin_options.address = options.admin;
  admin_options.metrics = [&] {
    return prefill.wired.metrics->Render() + decode.wired.metrics->Render();
  };
  admin_options.ready = [] { return absl::OkStatus(); };
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<AdminServer> admin,
                         AdminServer::Start(std::move(admin_options)));
  BATON_RETURN_IF_ERROR(WriteReadyFile(options.ready_file,
                                       {{"address", prefill.server->address()},
                                        {"decode", decode.server->address()},
                                        {"admin", admin->address()}}));
  stop->Wait();
  const bool prefill_clean = prefill.Drain();
  const bool decode_clean = decode.Drain();
  log::ExitProcess(prefill_clean && decode_clean ? 0 : 1);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::Stop stop;
  const baton::ShutdownSignals handler([&](int) { stop.Set(); });
  baton::WorkerOptions options("pair");
  baton::ConfigParser parser("baton-loopback-pair",
                             "Both workers in one process.");
  options.Register(&parser, baton::PeerRole::kPrefill);
  parser.ParseOrExit(argc, argv);
  baton::log::InitLogging({.role = "pair"});
  const absl::Status status = baton::Serve(options, &stop);
  baton::log::Error("{}", std::string(status.message()));
  return 1;
}
