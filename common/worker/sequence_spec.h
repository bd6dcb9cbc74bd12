#ifndef BATON_COMMON_WORKER_SEQUENCE_SPEC_H_
#define BATON_COMMON_WORKER_SEQUENCE_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/engine/engine.h"
#include "common/sampling/sampling.h"
#include "common/sequence/sequence.h"
#include "common/tokens/token.h"
#include "proto/sequence.pb.h"

namespace baton {

// What a worker can serve.
struct SequenceLimits {
  uint32_t max_context_tokens = 0;
  uint32_t vocabulary_size = 0;
  uint32_t max_choices = 8;
  uint32_t max_stop_strings = 16;
  uint32_t max_stop_string_bytes = 256;
  uint32_t max_priority = 2;
  uint32_t max_prefix_salt_bytes = 256;
};

// A request as a scheduler works on it. All choices share the context: the
// prompt, followed by the generated tokens of a replay (which has exactly one
// choice).
struct SequenceRequest {
  std::shared_ptr<const SequenceParams> params;
  std::vector<Sequence> choices;  // at least one, none finished
  uint32_t context_tokens = 0;    // prompt and replayed tokens
  uint32_t priority = 0;          // 0 = high
  std::string prefix_salt;        // for PrefixSeed

  // Token of the shared context; position < context_tokens.
  TokenId ContextToken(uint32_t position) const {
    return choices.front().TokenAt(position);
  }
};

// Checks and converts what a router sent: nothing in `spec` is trusted.
// INVALID_ARGUMENT `sequence.field: what (got G, allowed A)`.
absl::StatusOr<SequenceRequest> ParseSequenceSpec(
    const v1::SequenceSpec& spec, const SequenceLimits& limits,
    std::shared_ptr<const Vocabulary> vocabulary);

// Tokens that the spec's first pass must compute: prompt and replay. For specs
// not checked yet.
uint64_t ContextTokensOf(const v1::SequenceSpec& spec);

// Draw of the sequence's next token. Counts travel only if a penalty needs
// them.
DrawRequest NextDrawOf(const Sequence& sequence,
                       const std::shared_ptr<const SequenceParams>& params);

// The same with other parameters than the sequence's own.
DrawRequest NextDrawOf(const Sequence& sequence,
                       std::shared_ptr<const SamplingParams> sampling);

// What the client side learns about a token just appended.
v1::TokenDelta ToDelta(AttemptId attempt, const Sequence& sequence,
                       Sequence::Appended appended,
                       const SampledToken& sampled);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SEQUENCE_SPEC_H_
