#include "common/worker/worker_options.h"

#include "absl/status/status.h"
#include "common/base/host_port.h"
#include "common/base/strings.h"

namespace baton {

namespace {

bool OnLoopback(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  return parsed.ok() && IsLoopback(parsed->host);
}

absl::Status CheckTransport(const WorkerOptions& options) {
  if (options.transport == "loopback") {
    return absl::InvalidArgumentError(
        "transport: loopback connects workers inside one process only "
        "(expected auto, ucx or grpc)");
  }
  if (options.TransportName() == "grpc") {
    return CheckPlainText("transfer-listen", options.TransferAddress(),
                          options.tls.enabled(), options.insecure);
  }
  if (!options.trusted_network && !OnLoopback(options.listen)) {
    return absl::InvalidArgumentError(StrCat(
        "transport: ucx refused beyond loopback without --trusted-network: no "
        "memory protection, who reaches its ports can read and write this "
        "process (listen is ",
        options.listen, "); use --transport=grpc with TLS"));
  }
  if (!options.transfer_listen.empty()) {
    return absl::InvalidArgumentError(
        "transfer-listen: only the grpc transport listens there (transport is "
        "ucx)");
  }
  return absl::OkStatus();
}

}  // namespace

std::string WorkerOptions::TransportName() const {
  if (transport != "auto") return transport;
  const bool ucx = trusted_network || OnLoopback(listen);
  return ucx && transfer_listen.empty() ? "ucx" : "grpc";
}

std::string WorkerOptions::TransferAddress() const {
  if (!transfer_listen.empty()) return transfer_listen;
  auto address = ParseHostPort(listen);
  if (!address.ok()) return listen;
  address->port = 0;
  return address->ToString();
}

void WorkerOptions::Register(ConfigParser* parser, PeerRole role) {
  parser->AddString("model", &model, "GGUF file to serve");
  parser->Require("model");
  parser->AddHostPort("listen", &listen, "where routers connect");
  parser->AddHostPort("admin", &admin, "metrics and health over HTTP");
  parser->AddSwitch("insecure", &insecure,
                    "allow plain text beyond the loopback device where there "
                    "is no TLS");
  tls.Register(parser, role);
  parser->AddString("worker-id", &worker_id, "stable name of this worker");
  parser->AddInteger("threads", &threads, 0, 256,
                     "compute threads; 0 = all CPUs this process may use");
  parser->AddChoice("isa", &isa,
                    {"auto", "scalar", "avx2", "avxvnni", "avx512", "amx"},
                    "instruction set of the kernels");
  parser->AddChoice("weights", &weights, {"file", "int8"},
                    "weights in memory: as in the file, or output and "
                    "feed-forward matrices of F32, F16 or BF16 made int8");
  parser->AddChoice("kv-type", &kv_type, {"f16", "f32", "i8"},
                    "element type of the KV cache; equal on all workers that "
                    "share requests");
  parser->AddByteSize("kv-pool", &kv_pool_bytes,
                      "memory for KV blocks; 0 = from free memory");
  parser->AddInteger("kv-blocks", &kv_blocks, 0, 1 << 24,
                     "KV blocks instead of --kv-pool");
  parser->AddInteger("max-context", &max_context, 0, 1 << 24,
                     "most tokens of prompt and answer; 0 = the model's "
                     "context. The pool holds at least one such request");
  parser->AddInteger("step-tokens", &step_tokens, 1, 8192,
                     "most prompt tokens per step");
  parser->AddDuration("step-target", &step_target,
                      "prompt tokens join a step as long as it is predicted "
                      "to end within this; 0 = step-tokens always");
  parser->AddChoice("transport", &transport,
                    {"auto", "ucx", "grpc", "loopback"},
                    "how KV blocks travel; auto: ucx on loopback and trusted "
                    "networks, else grpc");
  parser->AddHostPort("transfer-listen", &transfer_listen,
                      "where KV blocks arrive with the grpc transport; "
                      "default: the host of --listen, any port");
  parser->AddSwitch("trusted-network", &trusted_network,
                    "the network is isolated: ucx may leave the loopback "
                    "device");
  parser->AddDuration("drain-timeout", &drain_timeout,
                      "time for accepted work after SIGTERM");
  parser->AddDuration("termination-grace", &termination_grace,
                      "what the supervisor waits from SIGTERM to SIGKILL; "
                      "0 = unknown");
  parser->AddDuration("step-timeout", &step_timeout,
                      "a step that runs longer makes this worker unhealthy");
  parser->AddString("ready-file", &ready_file,
                    "file to write the addresses to when serving");
  parser->AddSwitch("core-dumps", &core_dumps,
                    "let a crash write memory to disk, with prompts and KV");
  parser->AddChoice("log-level", &log_level, {"debug", "info", "warn", "error"},
                    "least level logged");
  parser->AddCheck({"kv-pool", "kv-blocks"}, [parser] {
    if (parser->Given("kv-pool") && parser->Given("kv-blocks")) {
      return absl::InvalidArgumentError(
          "kv-blocks: expected either this or kv-pool (got both)");
    }
    return absl::OkStatus();
  });
  parser->AddCheck({"step-timeout"}, [this] {
    if (step_timeout <= Duration::zero()) {
      return absl::InvalidArgumentError(
          "step-timeout: must be more than 0 (got 0ms)");
    }
    return absl::OkStatus();
  });
  parser->AddCheck({"listen", "insecure"}, [this] {
    return CheckPlainText("listen", listen, tls.enabled(), insecure);
  });
  parser->AddCheck({"admin", "insecure"}, [this] {
    return CheckPlainText("admin", admin, /*tls=*/false, insecure);
  });
  parser->AddCheck({"transport"}, [this] { return CheckTransport(*this); });
}

}  // namespace baton
