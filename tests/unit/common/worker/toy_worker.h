#ifndef BATON_TESTS_UNIT_COMMON_WORKER_TOY_WORKER_H_
#define BATON_TESTS_UNIT_COMMON_WORKER_TOY_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/worker/sequence_spec.h"
#include "common/worker/step_plan.h"

// A vocabulary, requests and a forward pass small enough to reason about.
namespace baton::toy {

inline constexpr uint32_t kVocabulary = 100;
inline constexpr TokenId kEnd = 2;

inline std::shared_ptr<const Vocabulary> MakeVocabulary() {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->bytes = [](TokenId token, bool skip_special) -> std::string_view {
    static const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    if (token < 3) return skip_special ? "" : "<end>";
    return std::string_view(letters).substr(token % letters.size(), 1);
  };
  vocabulary->end_of_generation = {kEnd};
  vocabulary->size = kVocabulary;
  return vocabulary;
}

inline SequenceLimits Limits(uint32_t context = 4096) {
  return {.max_context_tokens = context, .vocabulary_size = kVocabulary};
}

inline v1::SequenceSpec MakeSpec(uint32_t prompt, uint32_t max_tokens,
                                 uint32_t choices = 1) {
  v1::SequenceSpec spec;
  for (uint32_t i = 0; i < prompt; ++i) {
    spec.add_prompt_token_ids(3 + i % (kVocabulary - 3));
  }
  spec.mutable_sampling()->set_top_p(1);
  spec.mutable_sampling()->set_repetition_penalty(1);
  spec.set_max_tokens(max_tokens);
  spec.set_skip_special_tokens(true);
  for (uint32_t i = 0; i < choices; ++i) spec.add_choices()->set_index(i);
  return spec;
}

using DrawToken = std::function<TokenId(const DrawRequest&)>;

inline TokenId AnyToken(const DrawRequest& draw) {
  return 3 + (draw.position * 31 + draw.choice * 7) % (kVocabulary - 3);
}

// Every fifth guess is wrong.
inline TokenId MostlyAnyToken(const DrawRequest& draw) {
  return draw.position % 5 == 0 ? TokenId{kEnd} : AnyToken(draw);
}

// The tokens of each span of a step, with the guesses that a draft model makes.
inline std::vector<std::vector<TokenId>> TokensOf(const StepPlan& plan,
                                                  const DrawToken& guess) {
  std::vector<std::vector<TokenId>> tokens;
  for (const PlannedSpan& span : plan.spans) tokens.push_back(span.tokens);
  for (const PlannedDraft& draft : plan.drafts) {
    DrawRequest draw = plan.spans[draft.span].draws.at(0);
    for (uint32_t i = 0; i < draft.count; ++i, ++draw.position) {
      tokens[draft.span].push_back(guess(draw));
    }
  }
  return tokens;
}

inline StepResult RunToy(const StepPlan& plan,
                         const DrawToken& draw_token = AnyToken,
                         const DrawToken& guess = MostlyAnyToken) {
  StepResult result;
  const std::vector<std::vector<TokenId>> tokens = TokensOf(plan, guess);
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const PlannedSpan& span = plan.spans[i];
    SpanResult one;
    if (span.drafted) {
      one.draws =
          *DrawRun(span.draws.at(0), absl::MakeSpan(tokens[i]).subspan(1),
                   [&](size_t, const DrawRequest& draw) {
                     return SampledToken{draw_token(draw), -0.5f, {}};
                   });
      one.guesses = static_cast<uint32_t>(tokens[i].size() - 1);
      result.spans.push_back(std::move(one));
      continue;
    }
    for (const DrawRequest& draw : span.draws) {
      one.draws.push_back({draw_token(draw), -0.5f, {}});
    }
    result.spans.push_back(std::move(one));
  }
  return result;
}

}  // namespace baton::toy

#endif  // BATON_TESTS_UNIT_COMMON_WORKER_TOY_WORKER_H_
