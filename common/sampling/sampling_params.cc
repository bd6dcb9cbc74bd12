#include <cmath>
#include <string>

#include "common/base/strings.h"
#include "common/sampling/sampling.h"

namespace baton {
namespace {

constexpr uint32_t kMaxTopLogprobs = 20;
constexpr float kMaxBias = 100;

class Violations {
 public:
  template <class Got>
  void Require(bool holds, std::string_view field, std::string_view what,
               const Got& got, std::string_view allowed) {
    if (holds) return;
    StrAppend(&text_, text_.empty() ? "" : "; ", "sampling.", field, ": ", what,
              " (got ", got, ", allowed ", allowed, ")");
  }

  absl::Status status() const {
    return text_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(text_);
  }

 private:
  std::string text_;
};

}  // namespace

absl::Status Validate(const SamplingParams& params, size_t vocabulary_size) {
  Violations violations;
  const auto range = [&](bool holds, std::string_view field, auto got,
                         std::string_view allowed) {
    violations.Require(holds, field, "out of range", got, allowed);
  };
  range(params.temperature >= 0 && params.temperature <= 2, "temperature",
        params.temperature, "0..2");
  range(params.top_p > 0 && params.top_p <= 1, "top_p", params.top_p,
        "above 0, up to 1");
  range(params.min_p >= 0 && params.min_p <= 1, "min_p", params.min_p, "0..1");
  range(params.repetition_penalty > 0 && params.repetition_penalty <= 10,
        "repetition_penalty", params.repetition_penalty, "above 0, up to 10");
  range(std::abs(params.presence_penalty) <= 2, "presence_penalty",
        params.presence_penalty, "-2..2");
  range(std::abs(params.frequency_penalty) <= 2, "frequency_penalty",
        params.frequency_penalty, "-2..2");
  range(params.top_logprobs <= kMaxTopLogprobs, "top_logprobs",
        params.top_logprobs, "0..20");
  for (size_t i = 0; i < params.logit_bias.size(); ++i) {
    const auto& [token, bias] = params.logit_bias[i];
    const std::string field = StrCat("logit_bias[", i, "]");
    violations.Require(token < vocabulary_size, field + ".token",
                       "not in the vocabulary", token,
                       StrCat("0..", vocabulary_size - 1));
    violations.Require(i == 0 || params.logit_bias[i - 1].first < token,
                       field + ".token", "not ascending", token,
                       "each id once, ascending");
    range(std::abs(bias) <= kMaxBias, field + ".bias", bias, "-100..100");
  }
  return violations.status();
}

void TokenCounts::AddPrompt(absl::Span<const TokenId> tokens) {
  for (const TokenId token : tokens) counts_.try_emplace(token, 0);
}

void TokenCounts::AddOutput(TokenId token) { ++counts_[token]; }

bool TokenCounts::Seen(TokenId token) const { return counts_.contains(token); }

uint32_t TokenCounts::OutputCount(TokenId token) const {
  const auto it = counts_.find(token);
  return it == counts_.end() ? 0 : it->second;
}

const absl::flat_hash_map<TokenId, uint32_t>& TokenCounts::counts() const {
  return counts_;
}

}  // namespace baton
