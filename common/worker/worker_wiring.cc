#include "common/worker/worker_wiring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/random_bytes.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "common/worker/process_memory.h"
#include "common/worker/resource_limits.h"
#include "common/worker/step_costs.h"
#include "common/worker/vocabulary_adapter.h"
#include "common/worker/worker_hello.h"

namespace baton {
namespace {

std::string RoleName(v1::WorkerRole role) {
  return role == v1::WORKER_ROLE_PREFILL ? "prefill" : "decode";
}

void LogCosts(const CostModel& model) {
  const StepCosts& costs = model.costs();
  log::Info(
      "a step: {:.2f} ms to read the weights, {:.3f} ms a row, {:.3f} ms a "
      "row's logits; up to {:.0f} rows cost as much as one",
      (costs.fixed + costs.weights) * 1e3, costs.row * 1e3,
      costs.logit_row * 1e3, std::max(1.0, model.FreeRows()));
}

}  // namespace

absl::StatusOr<WiredWorker> WireWorker(const WorkerOptions& options,
                                       const WorkerWiring& wiring) {
  WiredWorker wired;
  if (options.tls.enabled()) {
    BATON_ASSIGN_OR_RETURN(
        wired.tls, TlsCredentials::Load(options.tls.files,
                                        wiring.role == v1::WORKER_ROLE_PREFILL
                                            ? PeerRole::kPrefill
                                            : PeerRole::kDecode));
  }
  Limit threads = ThreadLimit(AffinityCpus(), SystemFiles());
  if (options.threads > 0) threads = {options.threads, "--threads"};
  BATON_ASSIGN_OR_RETURN(wired.backend,
                         wiring.make_backend(static_cast<int>(threads.value)));
  log::Info("{} with {} threads ({})", std::string(wired.backend->name()),
            threads.value, threads.reason);
  const MonotonicTime load_start = MonotonicNow();
  BATON_ASSIGN_OR_RETURN(wired.served,
                         LoadServedModel(options, wired.backend.get()));
  const ServedModel& served = wired.served;
  if (wiring.on_model_loaded != nullptr) {
    BATON_RETURN_IF_ERROR(wiring.on_model_loaded(served, wired.backend.get()));
  }
  const size_t block_bytes = served.model->kv_layout().block_bytes();
  log::Info("{}: {:.1f} MiB of weights, loaded in {:.0f} ms",
            served.model->config().name,
            static_cast<double>(served.model->weight_bytes()) / (1 << 20),
            Milliseconds(MonotonicNow() - load_start));
  const ProcessMemory memory = ReadProcessMemory(SystemFiles());
  log::Info(
      "memory: {} MiB resident, {} MiB at most so far, {} MiB in huge pages",
      memory.resident_bytes >> 20, memory.peak_resident_bytes >> 20,
      memory.huge_page_bytes >> 20);
  log::Info("KV pool: {} blocks of {} KiB, {} tokens ({}); context {} tokens",
            served.memory->blocks(), block_bytes >> 10,
            uint64_t{served.memory->blocks()} * kBlockTokens,
            served.pool_reason, served.max_context_tokens);

  wired.metrics = std::make_unique<WorkerMetrics>(RoleName(wiring.role),
                                                  served.model->config().name);
  wired.metrics->PublishMemory(memory);
  WorkerParts parts;
  parts.epoch = WorkerEpoch(RandomNonZero64());
  parts.model = served.model.get();
  parts.memory = served.memory.get();
  parts.vocabulary = VocabularyOf(served.tokenizer);
  parts.max_context_tokens = served.max_context_tokens;
  parts.step_tokens = options.step_tokens;
  parts.step_target = options.step_target;
  parts.step_timeout = options.step_timeout;
  parts.metrics = wired.metrics.get();
  parts.poison_freed_blocks = BATON_DEBUG_BUILD;
  BATON_ASSIGN_OR_RETURN(
      parts.costs,
      ProbeStepCosts(*served.model, served.memory.get(),
                     {.max_rows = options.step_tokens,
                      .max_positions = served.max_context_tokens}));
  LogCosts(*parts.costs);
  BATON_ASSIGN_OR_RETURN(parts.transport, wiring.make_transport(wired.tls));
  v1::WorkerHello hello =
      MakeWorkerHello(options, wiring.role, served, *wired.backend, parts.epoch,
                      parts.transport->name());
  wired.worker = wiring.make_worker(std::move(parts), std::move(hello));
  return wired;
}

}  // namespace baton
