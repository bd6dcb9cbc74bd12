#ifndef BATON_TESTS_SIMULATION_TOY_MODEL_H_
#define BATON_TESTS_SIMULATION_TOY_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/engine/engine.h"
#include "common/sampling/sampling.h"
#include "common/sequence/sequence.h"
#include "common/tokens/token.h"
#include "kernels/api/kv_layout.h"

namespace baton::simulation {

// A language model whose every answer depends on every token of its context,
// and whose KV can be told apart from any other: logits are a hash of a digest
// chained over all tokens so far, and the KV of a position is {token, position,
// digest}. Reading KV verifies the chain from position 0, so wrong, stale,
// unwritten or torn blocks are found by the step that reads them.

inline constexpr uint32_t kToyVocabulary = 64;
inline constexpr TokenId kToyEnd = 62;
inline constexpr TokenId kToySpecial = 63;  // no text unless asked for

// 256 bytes per block, 16 per position.
kernels::KvLayout ToyKvLayout();

// One to four bytes of text per token; some are parts of a code point.
std::shared_ptr<const Vocabulary> ToyVocabulary();

// Digest of a context one token longer. The empty context has kToyOrigin.
inline constexpr uint64_t kToyOrigin = 0x6261746F6E746F79u;
// Other versions of the model have other answers and another KV.
constexpr uint64_t ToyOrigin(uint32_t version) { return kToyOrigin + version; }
uint64_t ExtendDigest(uint64_t digest, TokenId token);

// [kToyVocabulary]
std::vector<float> ToyLogits(uint64_t digest);

// Runs one step on real block memory, as Engine does. DATA_LOSS names the span
// and position whose KV is not what its own tokens say, or that is written
// before it is computed, and the steps stops there; a fence was broken.
absl::Status RunToyStep(absl::Span<const StepSpan> spans, uint32_t version,
                        StepResult* result);

// Makes positions [first, end) what nobody wrote: reading or writing them is
// found out.
void SpoilToyPositions(absl::Span<std::byte* const> blocks, uint64_t first,
                       uint64_t end);

// Draws the next token of a context, exactly as a step would.
SampledToken ToyDraw(uint64_t digest, const SamplingParams& params,
                     const TokenCounts& counts, const DrawContext& context);

// What a client must get for one choice, made without any cluster.
struct ToyAnswer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<std::string> texts;  // per token
  FinishCause finish;
};
ToyAnswer ExpectedAnswer(std::shared_ptr<const SequenceParams> params,
                         uint32_t choice, uint32_t version);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_TOY_MODEL_H_
