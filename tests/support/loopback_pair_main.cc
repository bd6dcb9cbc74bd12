// A prefill and a decode worker in one process: KV crosses by the loopback
// transport, everything else is as in the two real binaries. Ready file:
// {"address": prefill, "decode": decode, "admin": both}.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/ready_file.h"
#include "common/base/shutdown_requests.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/config/config_parser.h"
#include "common/rpc/rpc_server.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/worker/worker.h"
#include "common/worker/worker_drain.h"
#include "common/worker/worker_options.h"
#include "common/worker/worker_wiring.h"
#include "decode_worker/decode_worker.h"
#include "decode_worker/speculation_flags.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/loopback/loopback_transport.h"
#include "prefill_worker/prefill_worker.h"

namespace baton {
namespace {

struct PairOptions : WorkerOptions {
  std::string disaggregation = "always";
  std::string preempted_return = "auto";
  decode::SpeculationFlags speculation;
  decode::DecodeSettings decode;

  PairOptions() : WorkerOptions("pair") {}
  void Register(ConfigParser* parser) {
    WorkerOptions::Register(parser, PeerRole::kPrefill);
    parser->AddChoice("disaggregation", &disaggregation, {"never", "always"},
                      "whether the prefill worker reads the prompts");
    speculation.Register(parser, &decode);
    parser->AddChoice("preempted-return", &preempted_return,
                      {"auto", "recompute", "push"},
                      "as the flag of decode workers");
    parser->AddInteger("forced-preemptions", &decode.forced_preemptions, 0, 100,
                       "of every attempt, after each of its first steps");
  }
};

// `options` and `draft` outlive the worker.
WorkerWiring WiringOf(PairOptions& options, v1::WorkerRole role,
                      transfer::LoopbackHub* hub,
                      std::unique_ptr<decode::DraftModel>* draft) {
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
    wiring.on_model_loaded = [&options, draft](
                                 const ServedModel& served,
                                 kernels::Backend* backend) -> absl::Status {
      BATON_ASSIGN_OR_RETURN(
          *draft, options.speculation.Complete(
                      served, backend, options.step_tokens, &options.decode));
      return absl::OkStatus();
    };
    wiring.make_worker = [&options, draft](WorkerParts parts,
                                           v1::WorkerHello hello) {
      if (*draft != nullptr) parts.draft = (*draft)->parts();
      hello.set_max_sequences(options.decode.max_sequences);
      hello.set_disaggregation(options.disaggregation == "never"
                                   ? v1::DISAGGREGATION_NEVER
                                   : v1::DISAGGREGATION_ALWAYS);
      return std::make_unique<decode::DecodeWorker>(
          std::move(parts), std::move(hello), options.decode);
    };
  }
  return wiring;
}

// One worker with its server.
struct Half {
  std::unique_ptr<decode::DraftModel> draft;
  WiredWorker wired;
  std::unique_ptr<RpcServer> server;

  absl::Status Start(PairOptions& options, v1::WorkerRole role,
                     transfer::LoopbackHub* hub) {
    BATON_ASSIGN_OR_RETURN(
        wired, WireWorker(options, WiringOf(options, role, hub, &draft)));
    BATON_ASSIGN_OR_RETURN(server, RpcServer::Start({.address = "127.0.0.1:0"},
                                                    {wired.worker->service()}));
    server->SetServing(wired.worker->service_name(), true);
    return absl::OkStatus();
  }

  int Drain(ShutdownRequests& requests) {
    const int code =
        DrainWorker(*wired.worker, *server, requests, std::chrono::seconds(10));
    wired.worker.reset();
    return code;
  }
};

// Returns only when the pair cannot start.
absl::Status Serve(PairOptions options, ShutdownRequests& requests) {
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
  requests.StartServing();
  BATON_RETURN_IF_ERROR(WriteReadyFile(options.ready_file,
                                       {{"address", prefill.server->address()},
                                        {"decode", decode.server->address()},
                                        {"admin", admin->address()}}));
  requests.WaitAbove(0, kNever);
  const int prefill_code = prefill.Drain(requests);
  const int decode_code = decode.Drain(requests);
  log::ExitProcess(std::max(prefill_code, decode_code));
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::ShutdownRequests requests;
  const baton::ShutdownSignals handler(
      [&](int signal) { requests.Add(signal); });
  baton::PairOptions options;
  baton::ConfigParser parser("baton-loopback-pair",
                             "Both workers in one process.");
  options.Register(&parser);
  parser.ParseOrExit(argc, argv);
  if (options.preempted_return != "auto") {
    options.decode.preempted_return =
        options.preempted_return == "push"
            ? baton::decode::PreemptedReturn::kPush
            : baton::decode::PreemptedReturn::kRecompute;
  }
  options.decode.max_preemptions = std::max(options.decode.max_preemptions,
                                            options.decode.forced_preemptions);
  baton::log::InitLogging({.role = "pair"});
  const absl::Status status = baton::Serve(options, requests);
  baton::log::Error("{}", std::string(status.message()));
  return 1;
}
