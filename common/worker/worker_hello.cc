#include "common/worker/worker_hello.h"

#include <string>

#include "common/base/strings.h"

namespace baton {
namespace {

// "cpu-avx2" -> "avx2".
std::string IsaOf(const kernels::Backend& backend) {
  const std::string name(backend.name());
  return name.substr(name.find('-') + 1);
}

}  // namespace

v1::WorkerHello MakeWorkerHello(const WorkerOptions& options,
                                v1::WorkerRole role, const ServedModel& served,
                                const kernels::Backend& backend,
                                WorkerEpoch epoch, std::string_view transport) {
  const ModelConfig& config = served.model->config();
  v1::WorkerHello hello;
  hello.set_worker_epoch(epoch.value());
  hello.set_worker_id(options.worker_id);
  hello.set_role(role);
  hello.set_fingerprint(served.model->fingerprint());
  hello.set_model(config.name);
  hello.set_block_tokens(kBlockTokens);
  hello.set_block_bytes(served.model->kv_layout().block_bytes());
  hello.set_kv_blocks(served.memory->blocks());
  hello.set_max_context_tokens(served.max_context_tokens);
  hello.set_vocabulary_size(static_cast<uint32_t>(config.vocabulary));
  hello.set_step_token_budget(options.step_tokens);
  hello.add_transports(std::string(transport));
  hello.add_cpu_features(StrCat("isa=", IsaOf(backend)));
  hello.add_cpu_features(StrCat("threads=", backend.threads()));
  return hello;
}

}  // namespace baton
