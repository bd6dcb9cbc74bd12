#ifndef BATON_COMMON_SAMPLING_SAMPLING_H_
#define BATON_COMMON_SAMPLING_SAMPLING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tokens/token.h"

namespace baton {

// Resolved parameters of one request. Names and meaning follow the OpenAI and
// Hugging Face APIs.
struct SamplingParams {
  float temperature = 1;         // [0, 2]; 0 = greedy
  uint32_t top_k = 0;            // 0 = off
  float top_p = 1;               // (0, 1]
  float min_p = 0;               // [0, 1]
  float repetition_penalty = 1;  // (0, 10]; prompt and output tokens
  float presence_penalty = 0;    // [-2, 2]; output tokens
  float frequency_penalty = 0;   // [-2, 2]; output tokens
  uint64_t seed = 0;
  bool logprobs = false;
  uint32_t top_logprobs = 0;                          // 0..20
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending, unique ids
};

// INVALID_ARGUMENT `sampling.field: what (got G, allowed A)`; every error at
// once, separated by "; ". Ids are checked against the vocabulary.
absl::Status Validate(const SamplingParams& params, size_t vocabulary_size);

// How often each token has occurred, for the penalties. A function of prompt
// and output alone, so a replay rebuilds it exactly.
class TokenCounts {
 public:
  void AddPrompt(absl::Span<const TokenId> tokens);
  void AddOutput(TokenId token);
  bool Seen(TokenId token) const;  // prompt or output
  uint32_t OutputCount(TokenId token) const;
  // (token, occurrences in the output), unordered; only-prompt tokens have 0.
  const absl::flat_hash_map<TokenId, uint32_t>& counts() const;

 private:
  absl::flat_hash_map<TokenId, uint32_t> counts_;
};

struct LogprobEntry {
  TokenId token = 0;
  float logprob = 0;
};

struct SampledToken {
  TokenId token = 0;
  float logprob = 0;              // of the unmodified distribution
  std::vector<LogprobEntry> top;  // descending; ties: lower id first
};

// What one draw depends on besides the parameters: nothing else may matter.
struct DrawContext {
  uint32_t choice = 0;
  uint64_t position = 0;  // absolute: prompt length + tokens generated so far
  // Tokens not allowed at this position (end of generation before min_tokens).
  absl::Span<const TokenId> banned;
};

// Draws the next token: bias -> penalties -> (greedy) or temperature ->
// top-k -> top-p -> min-p -> draw, by Gumbel-max or inverse CDF from
// Philox4x32-10(key = seed, counter = choice, position), all in exact-v1
// arithmetic with a fixed order (logit descending, then id). `log_sum_exp` is
// LogSumExp of the unmodified logits, needed only when params.logprobs.
// INTERNAL when the logits hold a NaN or infinity. Pure.
absl::StatusOr<SampledToken> Sample(absl::Span<const float> logits,
                                    const SamplingParams& params,
                                    const TokenCounts& counts,
                                    const DrawContext& context,
                                    float log_sum_exp);

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_SAMPLING_H_
