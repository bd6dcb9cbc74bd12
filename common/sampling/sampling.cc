#include "common/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/strings.h"
#include "common/sampling/candidates.h"
#include "common/sampling/gumbel_noise.h"
#include "common/sampling/logit_blocks.h"
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

Candidate LastKept(const LogitBlocks& blocks, const SamplingParams& params) {
  Candidate last;
  if (params.top_k > 0 && params.top_k < blocks.logits().size()) {
    last = TopKCut(blocks, params.top_k);
  }
  if (params.top_p < 1) {
    last = TopPCut(blocks, params.temperature, params.top_p, last);
  }
  return last;
}

// Gumbel-max over the kept tokens. Most are ruled out by a bound on their
// noise, which costs no logarithm, whole blocks of them by their best one.
class GumbelDraw {
 public:
  GumbelDraw(const LogitBlocks& blocks, const SamplingParams& params,
             const GumbelNoise& noise)
      : blocks_(blocks),
        params_(params),
        noise_(noise),
        last_(LastKept(blocks, params)),
        winner_(blocks.best()),
        winning_score_(noise(winner_.token)) {}

  TokenId Run() {
    for (size_t block = 0; block < blocks_.maxima().size(); ++block) {
      if (MayWin(blocks_.maxima()[block])) TryBlock(block);
    }
    return winner_.token;
  }

 private:
  static constexpr size_t kTokens = LogitBlocks::kTokens;
  static_assert(kTokens == GumbelNoise::kBlock);

  float Weight(float logit) const {
    return (logit - blocks_.best().logit) / params_.temperature;
  }

  // Whether a token with this logit could be kept and win, whatever its noise.
  bool MayWin(float logit) const {
    constexpr float kMostNoise = 23;  // -log 2^-33 rounded up
    return logit >= last_.logit && Weight(logit) + kMostNoise >= winning_score_;
  }

  void TryBlock(size_t block) {
    const auto logits = blocks_.logits().subspan(block * kTokens, kTokens);
    float uniforms[kTokens];
    noise_.BlockUniforms(static_cast<TokenId>(block * kTokens), uniforms);
    float weights[kTokens];
    bool may_win[kTokens];
    for (size_t i = 0; i < logits.size(); ++i) {
      weights[i] = Weight(logits[i]);
      may_win[i] =
          GumbelNoise::MayExceed(uniforms[i], winning_score_ - weights[i]);
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!may_win[i]) continue;
      Try({logits[i], static_cast<TokenId>(block * kTokens + i)}, weights[i],
          uniforms[i]);
    }
  }

  void Try(const Candidate& candidate, float weight, float uniform) {
    if (!GumbelNoise::MayExceed(uniform, winning_score_ - weight) ||
        !Keeps(last_, candidate) || kernels::Exp(weight) < params_.min_p) {
      return;
    }
    const float score = weight + GumbelNoise::FromUniform(uniform);
    if (score > winning_score_ ||
        (score == winning_score_ && RanksBefore(candidate, winner_))) {
      winner_ = candidate;
      winning_score_ = score;
    }
  }

  const LogitBlocks& blocks_;
  const SamplingParams& params_;
  const GumbelNoise& noise_;
  const Candidate last_;
  Candidate winner_;
  float winning_score_;
};

TokenId DrawToken(const LogitBlocks& blocks, const SamplingParams& params,
                  const DrawContext& context) {
  if (params.temperature == 0) return blocks.best().token;
  const GumbelNoise noise(params.seed, context.choice, context.position);
  return GumbelDraw(blocks, params, noise).Run();
}

std::vector<LogprobEntry> TopLogprobs(const LogitBlocks& blocks, size_t n,
                                      float log_sum_exp) {
  std::vector<LogprobEntry> top;
  if (n == 0) return top;
  for (const Candidate& candidate : RankedUpTo(blocks, TopKCut(blocks, n))) {
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
  const LogitBlocks blocks(logits);
  if (!blocks.finite()) {
    return absl::InternalError("logits: a NaN or infinity");
  }
  SampledToken sampled;
  if (!params.logit_bias.empty() || HasPenalties(params) ||
      !context.banned.empty()) {
    const std::vector<float> modified =
        Modified(logits, params, counts, context.banned);
    const LogitBlocks allowed(modified);
    if (std::isinf(allowed.best().logit)) {
      return absl::InternalError("logits: every token is banned");
    }
    sampled.token = DrawToken(allowed, params, context);
  } else {
    sampled.token = DrawToken(blocks, params, context);
  }
  if (params.logprobs) {
    if (!std::isfinite(log_sum_exp)) {
      return absl::InternalError("log_sum_exp: NaN or infinity");
    }
    sampled.logprob = logits[sampled.token] - log_sum_exp;
    sampled.top = TopLogprobs(blocks, params.top_logprobs, log_sum_exp);
  }
  return sampled;
}

}  // namespace baton
