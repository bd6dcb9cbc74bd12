#include "decode_worker/draft_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/gguf.h"
#include "common/telemetry/log.h"
#include "common/worker/step_costs.h"

namespace baton::decode {
namespace {

absl::Status Differs(std::string_view what) {
  return absl::InvalidArgumentError(StrCat(
      "draft-model: its vocabulary is not that of the served model: ", what));
}

}  // namespace

absl::Status CheckSameVocabulary(const Tokenizer& served,
                                 const Tokenizer& draft) {
  if (served.vocabulary_size() != draft.vocabulary_size()) {
    return Differs(StrCat("got ", draft.vocabulary_size(), " tokens, allowed ",
                          served.vocabulary_size()));
  }
  for (TokenId id = 0; id < served.vocabulary_size(); ++id) {
    if (served.TokenBytes(id) != draft.TokenBytes(id)) {
      return Differs(StrCat(
          "token ", id, " is ", absl::CHexEscape(ToAbsl(draft.TokenBytes(id))),
          ", allowed ", absl::CHexEscape(ToAbsl(served.TokenBytes(id)))));
    }
    if (served.IsSpecial(id) != draft.IsSpecial(id)) {
      return Differs(StrCat("token ", id, " is ",
                            draft.IsSpecial(id) ? "" : "not ",
                            "a control token"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DraftModel>> DraftModel::Load(
    const DraftModelFlags& flags, const ServedModel& served,
    kernels::Backend* backend) {
  BATON_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(flags.path));
  BATON_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::FromGguf(*file));
  BATON_RETURN_IF_ERROR(CheckSameVocabulary(*served.tokenizer, *tokenizer));
  std::unique_ptr<DraftModel> draft(new DraftModel);
  ModelOptions model_options;
  model_options.kv_type = served.model->kv_layout().type;
  BATON_ASSIGN_OR_RETURN(draft->model_,
                         Model::Load(*file, backend, model_options));
  const ModelConfig& config = draft->model_->config();
  if (config.vocabulary != served.model->config().vocabulary) {
    return Differs(StrCat("got ", config.vocabulary,
                          " rows of the embedding, allowed ",
                          served.model->config().vocabulary));
  }
  const uint32_t blocks =
      flags.kv_blocks > 0 ? flags.kv_blocks : served.memory->blocks();
  BATON_ASSIGN_OR_RETURN(draft->memory_,
                         KvMemory::Create(draft->model_->kv_layout(), blocks));
  DraftModelOptions& options = draft->options_;
  options.blocks = blocks;
  options.max_positions = std::min<uint64_t>(
      static_cast<uint64_t>(config.context), uint64_t{blocks} * kBlockTokens);
  options.max_rows = flags.max_rows;
  options.tokens_per_step = flags.step_tokens;
  BATON_ASSIGN_OR_RETURN(
      options.costs,
      ProbeStepCosts(*draft->model_, draft->memory_.get(),
                     {.max_rows = std::max(1u, flags.step_tokens),
                      .max_positions = options.max_positions}));
  log::Info("{} guesses: {:.1f} MiB of weights, {} KV blocks of {} KiB",
            config.name,
            static_cast<double>(draft->model_->weight_bytes()) / (1 << 20),
            blocks, draft->model_->kv_layout().block_bytes() >> 10);
  return draft;
}

}  // namespace baton::decode
