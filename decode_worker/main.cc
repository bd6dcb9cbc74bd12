#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/cpu_check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "common/telemetry/log.h"
#include "common/worker/worker_options.h"
#include "common/worker/worker_process.h"
#include "decode_worker/decode_worker.h"
#include "decode_worker/draft_model.h"
#include "decode_worker/speculation_flags.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/ucx/ucx_transport.h"

namespace baton {
namespace {

struct DecodeWorkerOptions : WorkerOptions {
  std::string disaggregation = "auto";
  uint32_t local_prefill_max_tokens = 64;
  std::string batching = "continuous";
  std::string preempted_return = "auto";
  decode::SpeculationFlags speculation;
  decode::DecodeSettings settings;

  DecodeWorkerOptions() : WorkerOptions("decode-0") {
    step_target = std::chrono::milliseconds(50);  // a gap that users feel
  }
  void Register(ConfigParser* parser) {
    WorkerOptions::Register(parser, PeerRole::kDecode);
    parser->AddChoice("disaggregation", &disaggregation,
                      {"never", "always", "auto"},
                      "when prompts are prefilled by another worker");
    parser->AddInteger("local-prefill-max-tokens", &local_prefill_max_tokens, 0,
                       1 << 20, "longest prompt prefilled here in mode auto");
    parser->AddChoice("batching", &batching, {"continuous", "static"},
                      "when requests join the batch");
    speculation.Register(parser, &settings);
    parser->AddInteger("max-sequences", &settings.max_sequences, 1, 4096,
                       "answers in the batch or about to be");
    parser->AddDuration("tpot-target", &settings.tpot_target,
                        "answers join the batch as long as a step of all is "
                        "predicted to end within this; 0 = up to "
                        "max-sequences; default: step-target");
    parser->AddReal("landing-fraction", &settings.landing_fraction, 0.01, 1,
                    "of the pool, for KV on its way here");
    parser->AddDuration("landing-timeout", &settings.landing_timeout,
                        "longest wait for KV whose room is reserved");
    parser->AddInteger("max-preemptions", &settings.max_preemptions, 1, 100,
                       "how often an answer may lose its KV to others when the "
                       "pool is full; then it keeps all it can need");
    parser->AddChoice("preempted-return", &preempted_return,
                      {"auto", "recompute", "push"},
                      "how the KV of an answer that lost it comes back: "
                      "pushed once more by a prefill worker that still holds "
                      "it, or computed again");
    parser->AddReal("length-quantile", &settings.length_quantile, 0, 1,
                    "share of answers that shall be no longer than is planned "
                    "for them; 1 = plan for max_tokens");
    parser->AddCheck([this] {
      if (settings.landing_timeout > Duration::zero()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          "landing-timeout: must be more than 0 (got 0ms)");
    });
  }
};

v1::Disaggregation ModeOf(const std::string& name) {
  if (name == "never") return v1::DISAGGREGATION_NEVER;
  if (name == "always") return v1::DISAGGREGATION_ALWAYS;
  return v1::DISAGGREGATION_AUTO;
}

decode::PreemptedReturn ReturnOf(const std::string& name) {
  if (name == "recompute") return decode::PreemptedReturn::kRecompute;
  if (name == "push") return decode::PreemptedReturn::kPush;
  return decode::PreemptedReturn::kAuto;
}

int Main(int argc, char** argv) {
  DecodeWorkerOptions options;
  ConfigParser parser("baton-decode-worker",
                      "Receives prompts' KV and generates the answers.");
  options.Register(&parser);
  parser.ParseOrExit(argc, argv);
  if (!parser.Given("tpot-target")) {
    options.settings.tpot_target = options.step_target;
  }
  options.settings.batching = options.batching == "static"
                                  ? decode::Batching::kStatic
                                  : decode::Batching::kContinuous;
  options.settings.preempted_return = ReturnOf(options.preempted_return);

  WorkerWiring wiring;
  wiring.role = v1::WORKER_ROLE_DECODE;
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
  std::unique_ptr<decode::DraftModel> draft;
  wiring.on_model_loaded = [&](const ServedModel& served,
                               kernels::Backend* backend) -> absl::Status {
    BATON_ASSIGN_OR_RETURN(
        draft, options.speculation.Complete(
                   served, backend, options.step_tokens, &options.settings));
    return absl::OkStatus();
  };
  wiring.make_worker = [&](WorkerParts parts, v1::WorkerHello hello) {
    if (draft != nullptr) parts.draft = draft->parts();
    hello.set_max_sequences(options.settings.max_sequences);
    hello.set_disaggregation(ModeOf(options.disaggregation));
    hello.set_local_prefill_max_tokens(options.local_prefill_max_tokens);
    return std::make_unique<decode::DecodeWorker>(
        std::move(parts), std::move(hello), options.settings);
  };
  return RunWorker(options, wiring);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::RequireSupportedCpu();
  return baton::Main(argc, argv);
}
