#ifndef BATON_TESTS_SUPPORT_GENERATION_H_
#define BATON_TESTS_SUPPORT_GENERATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/engine/engine.h"
#include "common/model/model.h"
#include "common/sampling/sampling.h"
#include "common/tokens/token.h"

namespace baton {

// One sequence to be generated: it joins the batch at `first_step`.
struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::shared_ptr<const SamplingParams> params;
  uint32_t tokens = 1;  // to generate, >= 1
  uint32_t first_step = 0;
};

struct Completion {
  std::vector<SampledToken> tokens;
  uint32_t prefill_steps = 0;
  uint32_t largest_batch = 0;  // most spans in a step it took part in
};

// Runs the requests to their end in one batch: each step takes the next chunk
// of every prompt that is not done and one decode row of every one that is.
// Aborts on errors of the engine, whose max_rows must suffice.
std::vector<Completion> Generate(Engine* engine, const Model& model,
                                 absl::Span<const GenerationRequest> requests,
                                 uint32_t chunk);

// `count` tokens of a fixed pseudo-random text, the same for equal seeds.
std::vector<TokenId> PseudoText(uint32_t count, uint32_t vocabulary,
                                uint64_t seed);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_GENERATION_H_
