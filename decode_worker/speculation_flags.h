#ifndef BATON_DECODE_WORKER_SPECULATION_FLAGS_H_
#define BATON_DECODE_WORKER_SPECULATION_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/config_parser.h"
#include "common/worker/served_model.h"
#include "decode_worker/decode_engine.h"
#include "decode_worker/draft_model.h"
#include "kernels/api/backend.h"

namespace baton::decode {

// What a process is told about guesses, for the settings of its decode worker.
struct SpeculationFlags {
  std::string source = "suffix";
  std::string draft_model;
  uint32_t draft_kv_blocks = 0;

  // `settings` outlives the parser, as this does.
  void Register(ConfigParser* parser, DecodeSettings* settings);
  // Completes the settings once the flags were parsed and the served model is
  // there. The draft model, null if there is none; errors of DraftModel::Load.
  absl::StatusOr<std::unique_ptr<DraftModel>> Complete(
      const ServedModel& served, kernels::Backend* backend,
      uint32_t step_tokens, DecodeSettings* settings) const;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_FLAGS_H_
