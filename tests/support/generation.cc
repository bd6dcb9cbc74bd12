#include "tests/support/generation.h"

#include <algorithm>
#include <random>

#include "common/base/check.h"
#include "tests/support/model_under_test.h"

namespace baton {
namespace {

class GrowingSequence {
 public:
  GrowingSequence(const GenerationRequest& request, const Model& model)
      : request_(request),
        kv_(model.kv_layout(), request.prompt.size() + request.tokens),
        tokens_(request.prompt) {
    counts_.AddPrompt(request.prompt);
  }

  bool Joined(uint32_t step) const { return step >= request_.first_step; }
  bool Done() const { return completion.tokens.size() == request_.tokens; }

  StepSpan NextSpan(uint32_t chunk) const {
    const size_t rows = std::min<size_t>(chunk, tokens_.size() - fed_);
    const auto first = tokens_.begin() + static_cast<ptrdiff_t>(fed_);
    StepSpan span{.tokens = {first, first + static_cast<ptrdiff_t>(rows)},
                  .first_position = static_cast<uint32_t>(fed_),
                  .blocks = kv_.blocks(),
                  .draws = {}};
    if (fed_ + rows == tokens_.size()) {
      span.draws.push_back({.params = request_.params,
                            .counts = counts_,
                            .choice = 0,
                            .position = tokens_.size(),
                            .banned = {}});
    }
    return span;
  }

  void Apply(const StepSpan& span, const SpanResult& result, size_t batch) {
    BATON_CHECK(result.status.ok());
    completion.prefill_steps += fed_ < request_.prompt.size();
    completion.largest_batch =
        std::max(completion.largest_batch, static_cast<uint32_t>(batch));
    fed_ += span.tokens.size();
    for (const SampledToken& drawn : result.draws) {
      completion.tokens.push_back(drawn);
      tokens_.push_back(drawn.token);
      counts_.AddOutput(drawn.token);
    }
  }

  Completion completion;

 private:
  const GenerationRequest& request_;
  SequenceKv kv_;
  std::vector<TokenId> tokens_;
  TokenCounts counts_;
  size_t fed_ = 0;
};

}  // namespace

std::vector<Completion> Generate(Engine* engine, const Model& model,
                                 absl::Span<const GenerationRequest> requests,
                                 uint32_t chunk) {
  std::vector<std::unique_ptr<GrowingSequence>> sequences;
  for (const GenerationRequest& request : requests) {
    sequences.push_back(std::make_unique<GrowingSequence>(request, model));
  }
  for (uint32_t step = 0;; ++step) {
    std::vector<StepSpan> spans;
    std::vector<GrowingSequence*> active;
    bool waiting = false;
    for (const auto& sequence : sequences) {
      if (sequence->Done()) continue;
      waiting |= !sequence->Joined(step);
      if (!sequence->Joined(step)) continue;
      active.push_back(sequence.get());
      spans.push_back(sequence->NextSpan(chunk));
    }
    if (spans.empty() && !waiting) break;
    const absl::StatusOr<StepResult> result = engine->Step(spans);
    BATON_CHECK(result.ok());
    for (size_t i = 0; i < active.size(); ++i) {
      active[i]->Apply(spans[i], result->spans[i], spans.size());
    }
  }

  std::vector<Completion> completions;
  for (const auto& sequence : sequences) {
    completions.push_back(std::move(sequence->completion));
  }
  return completions;
}

std::vector<TokenId> PseudoText(uint32_t count, uint32_t vocabulary,
                                uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % vocabulary);
  }
  return tokens;
}

}  // namespace baton
