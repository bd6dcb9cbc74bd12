// A prefill or decode worker whose messages to other workers meet with the
// faults of --transfer-faults (kv_transfer/fault/fault_spec.h); all else is as
// in the real binaries, which do not link the decorator.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/config/config_parser.h"
#include "common/telemetry/log.h"
#include "common/worker/worker_options.h"
#include "common/worker/worker_process.h"
#include "decode_worker/decode_worker.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/fault/fault_transport.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/ucx/ucx_transport.h"
#include "prefill_worker/prefill_worker.h"

namespace baton {
namespace {

using transfer::FaultTransport;
using transfer::Transport;

// Tells each fault, so that a test knows that it took effect.
class ToldFaults final : public Transport {
 public:
  explicit ToldFaults(std::unique_ptr<FaultTransport> inner)
      : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  std::string address() const override { return inner_->address(); }
  absl::StatusOr<transfer::LinkId> Connect(std::string_view to) override {
    return inner_->Connect(to);
  }
  absl::Status Send(transfer::LinkId link, transfer::SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override {
    const uint64_t before = inner_->faults_done();
    const absl::Status status = inner_->Send(link, send, header, payload);
    if (inner_->faults_done() != before) {
      log::Info("transfer fault {} at message {}", inner_->faults_done(),
                inner_->messages());
    }
    return status;
  }
  void Close(transfer::LinkId link) override { inner_->Close(link); }
  bool Progress(transfer::TransportHandler* handler) override {
    return inner_->Progress(handler);
  }
  void Wait(Duration timeout) override { inner_->Wait(timeout); }
  void Wake() override { inner_->Wake(); }

 private:
  const std::unique_ptr<FaultTransport> inner_;
};

struct FaultyOptions : WorkerOptions {
  std::string role = "prefill";
  std::string faults;
  std::string disaggregation;  // of decode workers: always, whatever is given

  FaultyOptions() : WorkerOptions("faulty") {}
  void Register(ConfigParser* parser) {
    WorkerOptions::Register(parser, PeerRole::kPrefill);
    parser->AddChoice("role", &role, {"prefill", "decode"}, "kind of worker");
    parser->AddString("transfer-faults", &faults, "KIND:FIRST[/PERIOD],...");
    parser->AddString("disaggregation", &disaggregation, "always");
  }
};

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(
    const FaultyOptions& options, std::shared_ptr<const TlsCredentials> tls) {
  BATON_ASSIGN_OR_RETURN(std::vector<transfer::FaultSpec> faults,
                         transfer::ParseFaultSpecs(options.faults));
  std::unique_ptr<Transport> inner;
  if (options.TransportName() == "grpc") {
    BATON_ASSIGN_OR_RETURN(
        inner, transfer::MakeGrpcTransport({.listen = options.TransferAddress(),
                                            .tls = std::move(tls),
                                            .insecure = options.insecure}));
  } else {
    BATON_ASSIGN_OR_RETURN(inner, transfer::MakeUcxTransport({}));
  }
  return std::make_unique<ToldFaults>(
      std::make_unique<FaultTransport>(std::move(inner), std::move(faults)));
}

WorkerWiring WiringOf(const FaultyOptions& options) {
  WorkerWiring wiring;
  wiring.make_backend =
      [&](int threads) -> absl::StatusOr<std::unique_ptr<kernels::Backend>> {
    BATON_ASSIGN_OR_RETURN(const kernels::Isa isa,
                           kernels::ParseIsa(options.isa));
    return kernels::MakeCpuBackend({.isa = isa, .threads = threads});
  };
  wiring.make_transport = [&](std::shared_ptr<const TlsCredentials> tls) {
    return MakeTransport(options, std::move(tls));
  };
  if (options.role == "prefill") {
    wiring.role = v1::WORKER_ROLE_PREFILL;
    wiring.make_worker = [](WorkerParts parts, v1::WorkerHello hello) {
      return std::make_unique<prefill::PrefillWorker>(std::move(parts),
                                                      std::move(hello));
    };
    return wiring;
  }
  wiring.role = v1::WORKER_ROLE_DECODE;
  wiring.make_worker = [](WorkerParts parts, v1::WorkerHello hello) {
    const decode::DecodeSettings settings;
    hello.set_max_sequences(settings.max_sequences);
    hello.set_disaggregation(v1::DISAGGREGATION_ALWAYS);
    return std::make_unique<decode::DecodeWorker>(std::move(parts),
                                                  std::move(hello), settings);
  };
  return wiring;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::FaultyOptions options;
  baton::ConfigParser parser("baton-faulty-worker",
                             "A worker with a bad network, for tests.");
  options.Register(&parser);
  parser.ParseOrExit(argc, argv);
  return baton::RunWorker(options, baton::WiringOf(options));
}
