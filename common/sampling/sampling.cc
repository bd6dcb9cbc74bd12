#include "common/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/strings.h"
#include "common/sampling/candidates.h"
#include "common/sampling/gumbel_noise.h"
#include "kernels/api/exact_math.h"

namespace baton {
namespace {

float Clamped(float logit) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::clamp(logit, -kLargest, kLargest);
}

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

float Penalised(float logit, uint32_t occurrences,
                const SamplingParams& params) {
  const float repetition = params.repetition_penalty;
  logit = logit > 0 ? logit / repetition : logit * repetition;
  if (occurrences > 0) {
    logit -= params.presence_penalty;
    logit -= params.frequency_penalty * static_cast<float>(occurrences);
  }
  return Clamped(logit);
}

std::vector<float> Modified(absl::Span<const float> logits,
                            const SamplingParams& params,
                            const TokenCounts& counts,
                            absl::Span<const TokenId> banned) {
  std::vector<float> modified(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < modified.size()) {
      modified[token] = Clamped(modified[token] + bias);
    }
  }
  if (HasPenalties(params)) {
    for (const auto& [token, occurrences] : counts.counts()) {
      if (token < modified.size()) {
        modified[token] = Penalised(modified[token], occurrences, params);
      }
    }
  }
  for (const TokenId token : banned) {
    if (token < modified.size()) {
      modified[token] = -std::numeric_limits<float>::infinity();
    }
  }
  return modified;
}

Candidate LastKept(absl::Span<const float> logits, const Candidate& best,
                   const SamplingParams& params) {
  Candidate last;
  if (params.top_k > 0 && params.top_k < logits.size()) {
    last = TopKCut(logits, best, params.top_k);
  }
  if (params.top_p < 1) {
    last = TopPCut(logits, best, params.temperature, params.top_p, last);
  }
  return last;
}

// Gumbel-max over the kept tokens. Most are ruled out by a bound on their
// noise, which costs no logarithm.
TokenId Draw(absl::Span<const float> logits, const Candidate& best,
             const SamplingParams& params, const GumbelNoise& noise) {
  const Candidate last = LastKept(logits, best, params);
  Candidate winner = best;
  float winning_score = noise(best.token);
  for (size_t group = 0; group * 4 < logits.size(); ++group) {
    const size_t begin = group * 4;
    const size_t n = std::min<size_t>(4, logits.size() - begin);
    float highest = logits[begin];
    for (size_t i = 1; i < n; ++i) {
      highest = std::max(highest, logits[begin + i]);
    }
    constexpr float kMostNoise = 23;  // -log 2^-33 rounded up
    if (highest < last.logit ||
        (highest - best.logit) / params.temperature + kMostNoise <
            winning_score) {
      continue;
    }
    const std::array<float, 4> uniforms =
        noise.Uniforms(static_cast<uint32_t>(group));
    for (size_t i = 0; i < n; ++i) {
      const Candidate candidate{logits[begin + i],
                                static_cast<TokenId>(begin + i)};
      const float weight = (candidate.logit - best.logit) / params.temperature;
      if (!GumbelNoise::MayExceed(uniforms[i], winning_score - weight) ||
          !Keeps(last, candidate) || kernels::Exp(weight) < params.min_p) {
        continue;
      }
      const float score = weight + GumbelNoise::FromUniform(uniforms[i]);
      if (score > winning_score ||
          (score == winning_score && RanksBefore(candidate, winner))) {
        winner = candidate;
        winning_score = score;
      }
    }
  }
  return winner.token;
}

std::vector<LogprobEntry> TopLogprobs(absl::Span<const float> logits, size_t n,
                                      float log_sum_exp) {
  std::vector<LogprobEntry> top;
  if (n == 0) return top;
  const Candidate last = TopKCut(logits, Best(logits), n);
  for (const Candidate& candidate : RankedUpTo(logits, last)) {
    top.push_back({candidate.token, candidate.logit - log_sum_exp});
  }
  return top;
}

}  // namespace

absl::StatusOr<SampledToken> Sample(absl::Span<const float> logits,
                                    const SamplingParams& params,
                                    const TokenCounts& counts,
                                    const DrawContext& context,
                                    float log_sum_exp) {
  if (logits.empty()) return absl::InternalError("logits: none");
  if (!AllFinite(logits)) {
    return absl::InternalError("logits: a NaN or infinity");
  }
  std::vector<float> modified;
  absl::Span<const float> allowed = logits;
  if (!params.logit_bias.empty() || HasPenalties(params) ||
      !context.banned.empty()) {
    modified = Modified(logits, params, counts, context.banned);
    allowed = modified;
  }
  const Candidate best = Best(allowed);
  if (std::isinf(best.logit)) {
    return absl::InternalError("logits: every token is banned");
  }
  SampledToken sampled;
  sampled.token =
      params.temperature == 0
          ? best.token
          : Draw(allowed, best, params,
                 GumbelNoise(params.seed, context.choice, context.position));
  if (params.logprobs) {
    if (!std::isfinite(log_sum_exp)) {
      return absl::InternalError("log_sum_exp: NaN or infinity");
    }
    sampled.logprob = logits[sampled.token] - log_sum_exp;
    sampled.top = TopLogprobs(logits, params.top_logprobs, log_sum_exp);
  }
  return sampled;
}

}  // namespace baton
