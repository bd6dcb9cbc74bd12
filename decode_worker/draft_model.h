#ifndef BATON_DECODE_WORKER_DRAFT_MODEL_H_
#define BATON_DECODE_WORKER_DRAFT_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"
#include "common/tokenizer/tokenizer.h"
#include "common/worker/served_model.h"
#include "common/worker/step_driver.h"
#include "decode_worker/speculation/draft_model_planner.h"
#include "kernels/api/backend.h"

namespace baton::decode {

// OK if token ids mean the same to both models: as many tokens, each with the
// same bytes and the same role. INVALID_ARGUMENT names the first difference.
absl::Status CheckSameVocabulary(const Tokenizer& served,
                                 const Tokenizer& draft);

struct DraftModelFlags {
  std::string path;
  uint32_t kv_blocks = 0;  // 0: as many positions as the served model's pool
  uint32_t max_rows = 0;   // of one of its passes
  uint32_t step_tokens = 0;
};

// A second model in memory that guesses for a served one.
class DraftModel {
 public:
  // `backend` outlives the result. INVALID_ARGUMENT `draft-model: ...` when the
  // vocabularies differ; errors of Model::Load, KvMemory::Create and
  // Engine::Step.
  static absl::StatusOr<std::unique_ptr<DraftModel>> Load(
      const DraftModelFlags& flags, const ServedModel& served,
      kernels::Backend* backend);

  DraftModelParts parts() const { return {model_.get(), memory_.get()}; }
  const DraftModelOptions& options() const { return options_; }

 private:
  DraftModel() = default;

  std::unique_ptr<Model> model_;
  std::unique_ptr<KvMemory> memory_;
  DraftModelOptions options_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DRAFT_MODEL_H_
