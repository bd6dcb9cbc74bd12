#include "common/worker/sequence_spec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

absl::Status Bad(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("sequence.", field, ": ", what));
}

absl::Status CheckTokens(std::string_view field, size_t vocabulary,
                         absl::Span<const uint32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= vocabulary) {
      return Bad(field, StrCat("token out of range at ", i, " (got ", tokens[i],
                               ", allowed 0..", vocabulary - 1, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Span<const uint32_t> Ids(
    const google::protobuf::RepeatedField<uint32_t>& ids) {
  return {ids.data(), static_cast<size_t>(ids.size())};
}

SamplingParams ToSampling(const v1::SamplingSpec& spec) {
  SamplingParams params;
  params.temperature = spec.temperature();
  params.top_k = spec.top_k();
  params.top_p = spec.top_p();
  params.min_p = spec.min_p();
  params.repetition_penalty = spec.repetition_penalty();
  params.presence_penalty = spec.presence_penalty();
  params.frequency_penalty = spec.frequency_penalty();
  params.seed = spec.seed();
  params.logprobs = spec.logprobs();
  params.top_logprobs = spec.top_logprobs();
  params.logit_bias.assign(spec.logit_bias().begin(), spec.logit_bias().end());
  std::sort(params.logit_bias.begin(), params.logit_bias.end());
  return params;
}

absl::Status CheckNumbers(const v1::SequenceSpec& spec,
                          const SequenceLimits& limits) {
  const uint64_t prompt = spec.prompt_token_ids_size();
  const uint64_t context = limits.max_context_tokens;
  if (prompt == 0) return Bad("prompt_token_ids", "empty");
  if (prompt >= context) {
    return Bad("prompt_token_ids", StrCat("too long (got ", prompt,
                                          ", allowed 1..", context - 1, ")"));
  }
  if (spec.max_tokens() == 0 || prompt + spec.max_tokens() > context) {
    return Bad("max_tokens",
               StrCat("got ", spec.max_tokens(), ", allowed 1..",
                      context - prompt, " after ", prompt, " prompt tokens"));
  }
  if (spec.min_tokens() > spec.max_tokens()) {
    return Bad("min_tokens", StrCat("got ", spec.min_tokens(), ", allowed 0..",
                                    spec.max_tokens()));
  }
  if (spec.priority() > limits.max_priority) {
    return Bad("priority", StrCat("got ", spec.priority(), ", allowed 0..",
                                  limits.max_priority));
  }
  if (spec.prefix_salt().size() > limits.max_prefix_salt_bytes) {
    return Bad("prefix_salt", StrCat("length (got ", spec.prefix_salt().size(),
                                     " bytes, allowed 0..",
                                     limits.max_prefix_salt_bytes, ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckStops(const v1::SequenceSpec& spec,
                        const SequenceLimits& limits) {
  const uint32_t count = spec.stop_strings_size();
  if (count > limits.max_stop_strings) {
    return Bad("stop_strings", StrCat("too many (got ", count, ", allowed 0..",
                                      limits.max_stop_strings, ")"));
  }
  for (const std::string& stop : spec.stop_strings()) {
    if (stop.empty() || stop.size() > limits.max_stop_string_bytes) {
      return Bad("stop_strings",
                 StrCat("length (got ", stop.size(), " bytes, allowed 1..",
                        limits.max_stop_string_bytes, ")"));
    }
  }
  return CheckTokens("stop_token_ids", limits.vocabulary_size,
                     Ids(spec.stop_token_ids()));
}

absl::Status CheckChoices(const v1::SequenceSpec& spec,
                          const SequenceLimits& limits) {
  const uint32_t count = spec.choices_size();
  if (count == 0 || count > limits.max_choices) {
    return Bad("choices", StrCat("count (got ", count, ", allowed 1..",
                                 limits.max_choices, ")"));
  }
  absl::flat_hash_set<uint32_t> seen;
  for (const v1::ChoiceSpec& choice : spec.choices()) {
    if (choice.index() >= limits.max_choices ||
        !seen.insert(choice.index()).second) {
      return Bad("choices.index",
                 StrCat("repeated or out of range (got ", choice.index(),
                        ", allowed 0..", limits.max_choices - 1, ")"));
    }
    const uint32_t generated = choice.generated_token_ids_size();
    if (generated > 0 && count > 1) {
      return Bad("choices",
                 StrCat("a replay has exactly one choice (got ", count, ")"));
    }
    if (generated >= spec.max_tokens()) {
      return Bad("choices.generated_token_ids",
                 StrCat("got ", generated, " tokens, allowed 0..",
                        spec.max_tokens() - 1));
    }
    BATON_RETURN_IF_ERROR(CheckTokens("choices.generated_token_ids",
                                      limits.vocabulary_size,
                                      Ids(choice.generated_token_ids())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SequenceRequest> ParseSequenceSpec(
    const v1::SequenceSpec& spec, const SequenceLimits& limits,
    std::shared_ptr<const Vocabulary> vocabulary) {
  BATON_RETURN_IF_ERROR(CheckNumbers(spec, limits));
  BATON_RETURN_IF_ERROR(CheckTokens("prompt_token_ids", limits.vocabulary_size,
                                    Ids(spec.prompt_token_ids())));
  BATON_RETURN_IF_ERROR(CheckStops(spec, limits));
  BATON_RETURN_IF_ERROR(CheckChoices(spec, limits));

  auto params = std::make_shared<SequenceParams>();
  params->sampling = ToSampling(spec.sampling());
  BATON_RETURN_IF_ERROR(Validate(params->sampling, limits.vocabulary_size));
  params->prompt.assign(spec.prompt_token_ids().begin(),
                        spec.prompt_token_ids().end());
  params->max_tokens = spec.max_tokens();
  params->min_tokens = spec.min_tokens();
  params->ignore_eos = spec.ignore_eos();
  params->stop_strings.assign(spec.stop_strings().begin(),
                              spec.stop_strings().end());
  params->stop_token_ids.assign(spec.stop_token_ids().begin(),
                                spec.stop_token_ids().end());
  params->skip_special_tokens = spec.skip_special_tokens();

  SequenceRequest request;
  request.params = params;
  request.priority = spec.priority();
  request.prefix_salt = spec.prefix_salt();
  for (const v1::ChoiceSpec& choice : spec.choices()) {
    if (BATON_MUTANT("replay_shifts_prompt") &&
        choice.generated_token_ids_size() > 0) {
      params->prompt.push_back(choice.generated_token_ids(0));
    }
    Sequence sequence(params, vocabulary, choice.index(), {});
    for (uint32_t token : choice.generated_token_ids()) {
      if (sequence.Append(token).finish.has_value()) {
        return Bad("choices.generated_token_ids",
                   StrCat("the answer had ended (at token ",
                          sequence.generated().size(), " of ",
                          choice.generated_token_ids_size(), ")"));
      }
    }
    request.choices.push_back(std::move(sequence));
  }
  request.context_tokens =
      static_cast<uint32_t>(request.choices.front().length());
  return request;
}

uint64_t ContextTokensOf(const v1::SequenceSpec& spec) {
  uint64_t tokens = spec.prompt_token_ids_size();
  if (spec.choices_size() > 0) {
    tokens += spec.choices(0).generated_token_ids_size();
  }
  return tokens;
}

DrawRequest NextDrawOf(const Sequence& sequence,
                       const std::shared_ptr<const SequenceParams>& params) {
  return NextDrawOf(sequence, std::shared_ptr<const SamplingParams>(
                                  params, &params->sampling));
}

DrawRequest NextDrawOf(const Sequence& sequence,
                       std::shared_ptr<const SamplingParams> sampling) {
  const DrawContext context = sequence.NextDraw();
  DrawRequest draw;
  draw.choice = context.choice;
  draw.position = context.position;
  draw.banned.assign(context.banned.begin(), context.banned.end());
  draw.banned_before =
      sequence.params().prompt.size() + sequence.params().min_tokens;
  if (sampling->repetition_penalty != 1 || sampling->presence_penalty != 0 ||
      sampling->frequency_penalty != 0) {
    draw.counts = sequence.counts();
  }
  draw.params = std::move(sampling);
  return draw;
}

v1::TokenDelta ToDelta(AttemptId attempt, const Sequence& sequence,
                       Sequence::Appended appended,
                       const SampledToken& sampled) {
  v1::TokenDelta delta;
  delta.set_attempt_id(attempt.value());
  delta.set_choice(sequence.choice());
  delta.set_index(appended.index);
  delta.set_token_id(sampled.token);
  delta.set_text(std::move(appended.text));
  if (sequence.params().sampling.logprobs) {
    delta.set_logprob(sampled.logprob);
    for (const LogprobEntry& entry : sampled.top) {
      v1::TokenLogprob* top = delta.add_top_logprobs();
      top->set_token_id(entry.token);
      top->set_logprob(entry.logprob);
    }
  }
  if (appended.finish.has_value()) {
    v1::Finish* finish = delta.mutable_finish();
    finish->set_reason(appended.finish->kind == FinishKind::kStop
                           ? v1::FINISH_REASON_STOP
                           : v1::FINISH_REASON_LENGTH);
    if (appended.finish->stop_string.has_value()) {
      finish->set_stop_string(*appended.finish->stop_string);
    } else if (appended.finish->stop_token.has_value()) {
      finish->set_stop_token_id(*appended.finish->stop_token);
    }
  }
  return delta;
}

}  // namespace baton
