#include "common/worker/worker.h"

#include "common/base/random_bytes.h"

namespace baton {

transfer::TransferOptions WorkerParts::transfer_options() const {
  transfer::TransferOptions options;
  options.epoch = epoch;
  options.fingerprint = model->fingerprint();
  options.layout = memory->layout();
  options.random = FillRandom;
  return options;
}

SequenceLimits WorkerParts::sequence_limits() const {
  SequenceLimits limits;
  limits.max_context_tokens = max_context_tokens;
  limits.vocabulary_size = static_cast<uint32_t>(model->config().vocabulary);
  return limits;
}

ComputeHealth::Options WorkerParts::health_options() const {
  ComputeHealth::Options options;
  options.step_timeout = step_timeout;
  return options;
}

bool WorkerState::clean() const {
  return ledger.free + ledger[BlockUse::kPrefix] == ledger.total();
}

}  // namespace baton
