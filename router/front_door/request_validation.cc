#include "router/front_door/request_validation.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr int kMaxChoices = 8;
constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;
constexpr int kMaxStopTokens = 64;
constexpr int kMaxLogprobs = 20;
constexpr size_t kMaxLogitBias = 1024;
constexpr size_t kMaxSaltBytes = 64;
constexpr size_t kMaxModelBytes = 256;

struct RealRange {
  double min;
  double max;
  bool open_min;
  std::string_view text;
};

// The value, or `standard` when absent or wrong.
float Real(std::string_view field, bool present, float value, float standard,
           const RealRange& range, FieldErrors* errors) {
  if (!present) return standard;
  const bool low =
      range.open_min ? !(value > range.min) : !(value >= range.min);
  if (low || !(value <= range.max)) {
    errors->Add(field, "out of range", StrCat(value), range.text);
    return standard;
  }
  return value;
}

int64_t Integer(std::string_view field, bool present, int64_t value,
                int64_t standard, int64_t min, int64_t max,
                FieldErrors* errors) {
  if (!present) return standard;
  if (value < min || value > max) {
    errors->Add(field, "out of range", StrCat(value), StrCat(min, "..", max));
    return standard;
  }
  return value;
}

void ResolveLogitBias(const v1::SamplingOptions& from, size_t vocabulary,
                      v1::SamplingSpec* to, FieldErrors* errors) {
  if (from.logit_bias().size() > kMaxLogitBias) {
    errors->Add("sampling.logit_bias", "too many entries",
                StrCat(from.logit_bias().size()), StrCat("0..", kMaxLogitBias));
    return;
  }
  for (const auto& [token, bias] : from.logit_bias()) {
    const std::string field = StrCat("sampling.logit_bias[", token, "]");
    if (token >= vocabulary) {
      errors->Add(field, "outside the vocabulary", StrCat(token),
                  StrCat("0..", vocabulary - 1));
    } else if (!(bias >= -100) || !(bias <= 100)) {
      errors->Add(field, "out of range", StrCat(bias), "-100..100");
    } else {
      (*to->mutable_logit_bias())[token] = bias;
    }
  }
}

void ResolveSampling(const v1::SamplingOptions& from, size_t vocabulary,
                     uint64_t seed, v1::SamplingSpec* to, FieldErrors* errors) {
  to->set_temperature(Real("sampling.temperature", from.has_temperature(),
                           from.temperature(), 1, {0, 2, false, "0..2"},
                           errors));
  to->set_top_p(Real("sampling.top_p", from.has_top_p(), from.top_p(), 1,
                     {0, 1, true, "above 0, to 1"}, errors));
  to->set_min_p(Real("sampling.min_p", from.has_min_p(), from.min_p(), 0,
                     {0, 1, false, "0..1"}, errors));
  to->set_repetition_penalty(Real(
      "sampling.repetition_penalty", from.has_repetition_penalty(),
      from.repetition_penalty(), 1, {0, 10, true, "above 0, to 10"}, errors));
  to->set_presence_penalty(
      Real("sampling.presence_penalty", from.has_presence_penalty(),
           from.presence_penalty(), 0, {-2, 2, false, "-2..2"}, errors));
  to->set_frequency_penalty(
      Real("sampling.frequency_penalty", from.has_frequency_penalty(),
           from.frequency_penalty(), 0, {-2, 2, false, "-2..2"}, errors));
  if (from.has_top_k() && from.top_k() < -1) {
    errors->Add("sampling.top_k", "out of range", StrCat(from.top_k()),
                "-1 or 0 for off, or 1 and more");
  }
  to->set_top_k(static_cast<uint32_t>(std::max(from.top_k(), 0)));
  to->set_seed(from.has_seed() ? from.seed() : seed);
  ResolveLogitBias(from, vocabulary, to, errors);
}

void ResolveStops(const v1::GenerateRequest& request, size_t vocabulary,
                  v1::SequenceSpec* spec, FieldErrors* errors) {
  if (request.stop_size() > kMaxStopStrings) {
    errors->Add("stop", "too many", StrCat(request.stop_size()),
                StrCat("0..", kMaxStopStrings));
  } else {
    for (int i = 0; i < request.stop_size(); ++i) {
      const size_t bytes = request.stop(i).size();
      if (bytes == 0 || bytes > kMaxStopBytes) {
        errors->Add(StrCat("stop[", i, "]"), "wrong length",
                    StrCat(bytes, " bytes"), StrCat("1..", kMaxStopBytes));
      }
    }
    *spec->mutable_stop_strings() = request.stop();
  }
  if (request.stop_token_ids_size() > kMaxStopTokens) {
    errors->Add("stop_token_ids", "too many",
                StrCat(request.stop_token_ids_size()),
                StrCat("0..", kMaxStopTokens));
    return;
  }
  for (int i = 0; i < request.stop_token_ids_size(); ++i) {
    if (request.stop_token_ids(i) >= vocabulary) {
      errors->Add(StrCat("stop_token_ids[", i, "]"), "outside the vocabulary",
                  StrCat(request.stop_token_ids(i)),
                  StrCat("0..", vocabulary - 1));
    }
  }
  *spec->mutable_stop_token_ids() = request.stop_token_ids();
}

void CheckSalt(std::string_view salt, FieldErrors* errors) {
  const bool good = salt.size() <= kMaxSaltBytes &&
                    std::all_of(salt.begin(), salt.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                             c == '.' || c == '_' || c == '-';
                    });
  if (!good) {
    errors->Add("cache_salt", "not allowed",
                salt.size() > kMaxSaltBytes ? StrCat(salt.size(), " bytes")
                                            : Quoted(salt),
                "1..64 of [A-Za-z0-9._-]");
  }
}

std::vector<TokenId> PromptOf(const v1::GenerateRequest& request,
                              const ServingPolicy& policy,
                              const PromptBuilder& prompts,
                              FieldErrors* errors) {
  const bool escape = request.has_escape_special_tokens()
                          ? request.escape_special_tokens()
                          : policy.escape_special_tokens;
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      return prompts.FromText("prompt", request.text(),
                              {.parse_special = !escape}, errors);
    case v1::GenerateRequest::kTokenIds:
      if (request.token_ids().ids_size() >
          static_cast<int64_t>(policy.max_context_tokens)) {
        errors->Add("prompt",
                    StrCat(request.token_ids().ids_size(), " tokens, max ",
                           policy.max_context_tokens - 1));
        return {};
      }
      return prompts.FromIds("token_ids.ids", request.token_ids().ids(),
                             errors);
    case v1::GenerateRequest::kChat:
      return prompts.FromChat("chat", request.chat(), escape, errors).tokens;
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  errors->Add("prompt", "exactly one of text, token_ids, chat (got none)");
  return {};
}

void ResolveLengths(const v1::GenerateRequest& request,
                    const ServingPolicy& policy, uint32_t prompt,
                    v1::SequenceSpec* spec, FieldErrors* errors) {
  const uint32_t context = policy.max_context_tokens;
  if (prompt >= context) {
    errors->Add("prompt", StrCat(prompt, " tokens, max ", context - 1));
    return;
  }
  const uint32_t room = context - prompt;
  spec->set_max_tokens(std::min(policy.default_max_tokens, room));
  if (request.has_max_tokens()) {
    const int32_t wanted = request.max_tokens();
    if (wanted < 1 || static_cast<uint32_t>(wanted) > room) {
      errors->Add("max_tokens",
                  wanted < 1
                      ? "out of range"
                      : StrCat("prompt and answer exceed the context of ",
                               context, " tokens"),
                  StrCat(wanted), StrCat("1..", room));
    } else {
      spec->set_max_tokens(static_cast<uint32_t>(wanted));
    }
  }
  spec->set_min_tokens(static_cast<uint32_t>(
      Integer("min_tokens", request.has_min_tokens(), request.min_tokens(), 0,
              0, spec->max_tokens(), errors)));
}

}  // namespace

absl::StatusOr<ValidRequest> ValidateRequest(
    const v1::GenerateRequest& request, const ServingPolicy& policy,
    const PromptBuilder& prompts, uint64_t seed,
    const BeforePrompt& before_prompt) {
  if (absl::Status status = CheckModel(request.model(), policy.model_name);
      !status.ok()) {
    return status;
  }
  FieldErrors errors;
  ValidRequest valid;
  v1::SequenceSpec& spec = valid.spec;
  const size_t vocabulary = prompts.tokenizer().vocabulary_size();

  ResolveSampling(request.sampling(), vocabulary, seed, spec.mutable_sampling(),
                  &errors);
  ResolveStops(request, vocabulary, &spec, &errors);
  CheckSalt(request.cache_salt(), &errors);
  const int64_t n =
      Integer("n", request.has_n(), request.n(), 1, 1, kMaxChoices, &errors);
  const int64_t best_of =
      Integer("best_of", request.has_best_of(), request.best_of(), n, n,
              kMaxChoices, &errors);
  if (best_of > n) {
    valid.best = static_cast<uint32_t>(n);
    valid.tell_logprobs = request.has_logprobs();
  }
  for (int64_t i = 0; i < best_of; ++i) {
    spec.add_choices()->set_index(static_cast<uint32_t>(i));
  }
  spec.mutable_sampling()->set_logprobs(request.has_logprobs() || best_of > n);
  spec.mutable_sampling()->set_top_logprobs(static_cast<uint32_t>(
      Integer("logprobs", request.has_logprobs(), request.logprobs(), 0, 0,
              kMaxLogprobs, &errors)));
  valid.priority =
      static_cast<int>(Integer("priority", request.has_priority(),
                               request.priority(), 1, 0, 2, &errors));
  spec.set_ignore_eos(request.ignore_eos());
  spec.set_skip_special_tokens(!request.has_skip_special_tokens() ||
                               request.skip_special_tokens());

  if (before_prompt && errors.empty()) {
    if (absl::Status status = before_prompt(valid); !status.ok()) return status;
  }
  const int errors_before = errors.count();
  const std::vector<TokenId> prompt =
      PromptOf(request, policy, prompts, &errors);
  *spec.mutable_prompt_token_ids() = {prompt.begin(), prompt.end()};
  if (errors.count() == errors_before && prompt.empty()) {
    errors.Add("prompt", "no tokens");
  }
  ResolveLengths(request, policy, static_cast<uint32_t>(prompt.size()), &spec,
                 &errors);
  if (!errors.empty()) return errors.ToStatus();
  return valid;
}

absl::Status CheckModel(std::string_view model, std::string_view served) {
  if (model.empty() || model == served) return absl::OkStatus();
  const bool plausible =
      model.size() <= kMaxModelBytes &&
      model.find("..") == std::string_view::npos &&
      std::all_of(model.begin(), model.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("._-/:@+ ").find(c) != std::string_view::npos;
      });
  if (!plausible) return InvalidField("model", "not a model name");
  return absl::NotFoundError("model: not served here");
}

}  // namespace baton::router
