#include "decode_worker/speculation_flags.h"

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::decode {

void SpeculationFlags::Register(ConfigParser* parser,
                                DecodeSettings* settings) {
  SpeculationOptions& options = settings->speculation;
  parser->AddChoice("speculation", &source, {"off", "ngram", "suffix", "draft"},
                    "where guesses of the next tokens come from: they save "
                    "steps and change no answer");
  parser->AddString("draft-model", &draft_model,
                    "GGUF file of a smaller model with the same vocabulary "
                    "that guesses");
  parser->AddInteger("draft-kv-blocks", &draft_kv_blocks, 0, 1 << 24,
                     "KV blocks of the draft model; 0 = as many positions as "
                     "the served model has");
  parser->AddInteger("max-draft-tokens", &options.max_draft_tokens, 1,
                     kMostDraftTokens, "most guesses of an answer in a step");
  parser->AddByteSize("drafter-memory", &options.drafter_bytes,
                      "of all indexes that guesses come from; answers that "
                      "find no room there do without");
  parser->AddSwitch("draft-always", &options.always,
                    "guess as much as allowed, also where it costs more than "
                    "it is expected to save");
  parser->AddCheck({"speculation", "draft-model"}, [this] {
    if ((source == "draft") == !draft_model.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        source == "draft"
            ? "draft-model: needed by speculation=draft (got nothing)"
            : StrCat("draft-model: only speculation=draft uses one "
                     "(speculation is ",
                     source, ")"));
  });
}

absl::StatusOr<std::unique_ptr<DraftModel>> SpeculationFlags::Complete(
    const ServedModel& served, kernels::Backend* backend, uint32_t step_tokens,
    DecodeSettings* settings) const {
  settings->speculation.drafters = DraftersNamed(source);
  if (draft_model.empty()) return nullptr;
  BATON_ASSIGN_OR_RETURN(
      auto draft,
      DraftModel::Load({.path = draft_model,
                        .kv_blocks = draft_kv_blocks,
                        .max_rows = MaxStepRows(*settings, step_tokens),
                        .step_tokens = step_tokens},
                       served, backend));
  settings->speculation.draft_model = draft->options();
  return draft;
}

}  // namespace baton::decode
