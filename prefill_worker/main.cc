#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/cpu_check.h"
#include "common/base/status_macros.h"
#include "common/config/config_parser.h"
#include "common/telemetry/log.h"
#include "common/worker/worker_options.h"
#include "common/worker/worker_process.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/ucx/ucx_transport.h"
#include "prefill_worker/prefill_worker.h"

namespace baton {
namespace {

int Main(int argc, char** argv) {
  WorkerOptions options("prefill-0");
  ConfigParser parser("baton-prefill-worker",
                      "Computes prompts and hands their KV to a decode "
                      "worker.");
  options.Register(&parser, PeerRole::kPrefill);
  parser.ParseOrExit(argc, argv);

  WorkerWiring wiring;
  wiring.role = v1::WORKER_ROLE_PREFILL;
  wiring.make_backend =
      [&](int threads) -> absl::StatusOr<std::unique_ptr<kernels::Backend>> {
    BATON_ASSIGN_OR_RETURN(const kernels::Isa isa,
                           kernels::ParseIsa(options.isa));
    return kernels::MakeCpuBackend(
        {.isa = isa, .threads = threads, .warn = [](std::string_view message) {
           log::Warn("{}", std::string(message));
         }});
  };
  wiring.make_transport = [&](std::shared_ptr<const TlsCredentials> tls) {
    if (options.TransportName() == "grpc") {
      return transfer::MakeGrpcTransport({.listen = options.TransferAddress(),
                                          .tls = std::move(tls),
                                          .insecure = options.insecure});
    }
    transfer::UcxOptions ucx;
    ucx.trusted_network = options.trusted_network;
    return transfer::MakeUcxTransport(ucx);
  };
  wiring.make_worker = [](WorkerParts parts, v1::WorkerHello hello) {
    return std::make_unique<prefill::PrefillWorker>(std::move(parts),
                                                    std::move(hello));
  };
  return RunWorker(options, wiring);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::RequireSupportedCpu();
  return baton::Main(argc, argv);
}
