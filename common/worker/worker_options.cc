#include "common/worker/worker_options.h"

#include "absl/status/status.h"

namespace baton {

void WorkerOptions::Register(ConfigParser* parser) {
  parser->AddString("model", &model, "GGUF file to serve");
  parser->Require("model");
  parser->AddHostPort("listen", &listen, "where routers connect");
  parser->AddHostPort("admin", &admin, "metrics and health over HTTP");
  parser->AddSwitch("insecure", &insecure,
                    "listen in plain text beyond the loopback device");
  parser->AddString("worker-id", &worker_id, "stable name of this worker");
  parser->AddInteger("threads", &threads, 0, 256,
                     "compute threads; 0 = all CPUs this process may use");
  parser->AddChoice("isa", &isa, {"auto", "scalar", "avx2", "avx512"},
                    "instruction set of the kernels");
  parser->AddChoice("kv-type", &kv_type, {"f16", "f32"},
                    "element type of the KV cache");
  parser->AddByteSize("kv-pool", &kv_pool_bytes,
                      "memory for KV blocks; 0 = from free memory");
  parser->AddInteger("kv-blocks", &kv_blocks, 0, 1 << 24,
                     "KV blocks instead of --kv-pool");
  parser->AddInteger("step-tokens", &step_tokens, 1, 8192,
                     "prompt tokens per step (chunk budget)");
  parser->AddChoice("transport", &transport, {"ucx", "loopback"},
                    "how KV blocks travel");
  parser->AddSwitch("trusted-network", &trusted_network,
                    "the network is isolated: KV may leave the loopback "
                    "device");
  parser->AddDuration("drain-timeout", &drain_timeout,
                      "time for accepted work after SIGTERM");
  parser->AddString("ready-file", &ready_file,
                    "file to write the addresses to when serving");
  parser->AddChoice("log-level", &log_level, {"debug", "info", "warn", "error"},
                    "least level logged");
  parser->AddCheck([this, parser] {
    if (parser->Given("kv-pool") && parser->Given("kv-blocks")) {
      return absl::InvalidArgumentError(
          "kv-blocks: expected either this or kv-pool (got both)");
    }
    if (transport == "loopback") {
      return absl::InvalidArgumentError(
          "transport: loopback connects workers inside one process only "
          "(expected ucx)");
    }
    return absl::OkStatus();
  });
}

}  // namespace baton
