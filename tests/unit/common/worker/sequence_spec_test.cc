#include "common/worker/sequence_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/common/worker/toy_worker.h"

namespace baton {
namespace {

absl::StatusOr<SequenceRequest> Parse(const v1::SequenceSpec& spec) {
  return ParseSequenceSpec(spec, toy::Limits(1000), toy::MakeVocabulary());
}

TEST(SequenceSpec, ConvertsEveryField) {
  v1::SequenceSpec spec = toy::MakeSpec(5, 20);
  spec.mutable_sampling()->set_temperature(0.5);
  spec.mutable_sampling()->set_top_k(7);
  spec.mutable_sampling()->set_seed(99);
  spec.mutable_sampling()->set_logprobs(true);
  spec.mutable_sampling()->set_top_logprobs(3);
  (*spec.mutable_sampling()->mutable_logit_bias())[9] = 1.5;
  (*spec.mutable_sampling()->mutable_logit_bias())[4] = -2;
  spec.set_min_tokens(2);
  spec.set_ignore_eos(true);
  spec.add_stop_strings("xyz");
  spec.add_stop_token_ids(50);
  spec.set_priority(2);
  spec.set_prefix_salt(std::string(256, 's'));
  auto request = Parse(spec);
  ASSERT_TRUE(request.ok()) << request.status();
  const SequenceParams& params = *request->params;
  EXPECT_EQ(params.prompt, (std::vector<TokenId>{3, 4, 5, 6, 7}));
  EXPECT_EQ(params.sampling.temperature, 0.5f);
  EXPECT_EQ(params.sampling.top_k, 7u);
  EXPECT_EQ(params.sampling.seed, 99u);
  EXPECT_TRUE(params.sampling.logprobs);
  EXPECT_EQ(params.sampling.top_logprobs, 3u);
  EXPECT_THAT(
      params.sampling.logit_bias,
      testing::ElementsAre(testing::Pair(4, -2.f), testing::Pair(9, 1.5f)));
  EXPECT_EQ(params.max_tokens, 20u);
  EXPECT_EQ(params.min_tokens, 2u);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_TRUE(params.skip_special_tokens);
  EXPECT_THAT(params.stop_strings, testing::ElementsAre("xyz"));
  EXPECT_THAT(params.stop_token_ids, testing::ElementsAre(50));
  EXPECT_EQ(request->context_tokens, 5u);
  EXPECT_EQ(request->priority, 2u);
  EXPECT_EQ(request->prefix_salt, std::string(256, 's'));
}

TEST(SequenceSpec, ReplayExtendsTheContext) {
  v1::SequenceSpec spec = toy::MakeSpec(5, 20);
  spec.mutable_choices(0)->set_index(3);
  spec.mutable_choices(0)->add_generated_token_ids(40);
  spec.mutable_choices(0)->add_generated_token_ids(41);
  EXPECT_EQ(ContextTokensOf(spec), 7u);
  auto request = Parse(spec);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->context_tokens, 7u);
  EXPECT_EQ(request->ContextToken(6), 41u);
  const DrawRequest draw = NextDrawOf(request->choices[0], request->params);
  EXPECT_EQ(draw.choice, 3u);
  EXPECT_EQ(draw.position, 7u);
}

TEST(SequenceSpec, CountsTravelOnlyWithPenalties) {
  v1::SequenceSpec spec = toy::MakeSpec(5, 20);
  auto plain = Parse(spec);
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(NextDrawOf(plain->choices[0], plain->params).counts.Seen(3));
  spec.mutable_sampling()->set_repetition_penalty(1.1f);
  auto penalised = Parse(spec);
  ASSERT_TRUE(penalised.ok());
  EXPECT_TRUE(
      NextDrawOf(penalised->choices[0], penalised->params).counts.Seen(3));
}

struct BadSpec {
  const char* name;
  const char* message;  // part of it
  std::function<void(v1::SequenceSpec*)> spoil;
};

class SequenceSpecRefusal : public testing::TestWithParam<BadSpec> {};

TEST_P(SequenceSpecRefusal, NamesTheField) {
  v1::SequenceSpec spec = toy::MakeSpec(5, 20);
  GetParam().spoil(&spec);
  auto request = Parse(spec);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(request.status().message()),
              testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SequenceSpecRefusal,
    testing::Values(
        BadSpec{"NoPrompt", "sequence.prompt_token_ids: empty",
                [](auto* s) { s->clear_prompt_token_ids(); }},
        BadSpec{
            "PromptOverContext",
            "sequence.prompt_token_ids: too long (got 1000, allowed 1..999)",
            [](auto* s) { *s = toy::MakeSpec(1000, 1); }},
        BadSpec{"PromptToken",
                "sequence.prompt_token_ids: token out of range "
                "at 5 (got 100, allowed 0..99)",
                [](auto* s) { s->add_prompt_token_ids(100); }},
        BadSpec{"NoMaxTokens", "sequence.max_tokens: got 0, allowed 1..995",
                [](auto* s) { s->set_max_tokens(0); }},
        BadSpec{"MaxTokensOverflow", "sequence.max_tokens: got 4294967295",
                [](auto* s) { s->set_max_tokens(UINT32_MAX); }},
        BadSpec{"MinOverMax", "sequence.min_tokens: got 21, allowed 0..20",
                [](auto* s) { s->set_min_tokens(21); }},
        BadSpec{"Priority", "sequence.priority: got 3, allowed 0..2",
                [](auto* s) { s->set_priority(3); }},
        BadSpec{"PrefixSalt",
                "sequence.prefix_salt: length (got 257 bytes, allowed 0..256)",
                [](auto* s) { s->set_prefix_salt(std::string(257, 's')); }},
        BadSpec{"NoChoices", "sequence.choices: count (got 0, allowed 1..8)",
                [](auto* s) { s->clear_choices(); }},
        BadSpec{"NineChoices", "sequence.choices: count (got 9",
                [](auto* s) { *s = toy::MakeSpec(5, 20, 9); }},
        BadSpec{"SameChoiceTwice", "sequence.choices.index: repeated",
                [](auto* s) { s->add_choices()->set_index(0); }},
        BadSpec{"ChoiceIndex", "out of range (got 8, allowed 0..7)",
                [](auto* s) { s->mutable_choices(0)->set_index(8); }},
        BadSpec{"ReplayOfTwo", "a replay has exactly one choice (got 2)",
                [](auto* s) {
                  s->mutable_choices(0)->add_generated_token_ids(5);
                  s->add_choices()->set_index(1);
                }},
        BadSpec{"GeneratedToken", "generated_token_ids: token out of range",
                [](auto* s) {
                  s->mutable_choices(0)->add_generated_token_ids(100);
                }},
        BadSpec{"GeneratedAll", "got 20 tokens, allowed 0..19",
                [](auto* s) {
                  for (int i = 0; i < 20; ++i) {
                    s->mutable_choices(0)->add_generated_token_ids(5);
                  }
                }},
        BadSpec{"ReplayPastTheEnd", "the answer had ended (at token 2 of 3)",
                [](auto* s) {
                  for (uint32_t token : {5u, toy::kEnd, 6u}) {
                    s->mutable_choices(0)->add_generated_token_ids(token);
                  }
                }},
        BadSpec{"StopToken", "sequence.stop_token_ids: token out of range",
                [](auto* s) { s->add_stop_token_ids(1000); }},
        BadSpec{"EmptyStop", "sequence.stop_strings: length (got 0 bytes",
                [](auto* s) { s->add_stop_strings(""); }},
        BadSpec{"LongStop", "length (got 257 bytes, allowed 1..256)",
                [](auto* s) { s->add_stop_strings(std::string(257, 'x')); }},
        BadSpec{"ManyStops", "too many (got 17, allowed 0..16)",
                [](auto* s) {
                  for (int i = 0; i < 17; ++i) s->add_stop_strings("x");
                }},
        BadSpec{"Temperature", "sampling.temperature",
                [](auto* s) {
                  s->mutable_sampling()->set_temperature(std::nanf(""));
                }},
        BadSpec{"BiasToken", "sampling.logit_bias",
                [](auto* s) {
                  (*s->mutable_sampling()->mutable_logit_bias())[100] = 1;
                }}),
    [](const auto& test) { return test.param.name; });

TEST(TokenDelta, CarriesFinishAndLogprobs) {
  v1::SequenceSpec spec = toy::MakeSpec(5, 20);
  spec.mutable_sampling()->set_logprobs(true);
  auto request = Parse(spec);
  ASSERT_TRUE(request.ok());
  Sequence& sequence = request->choices[0];
  SampledToken sampled{toy::kEnd, -0.25f, {{toy::kEnd, -0.25f}, {7, -2.f}}};
  const v1::TokenDelta delta =
      ToDelta(AttemptId(11), sequence, sequence.Append(toy::kEnd), sampled);
  EXPECT_EQ(delta.attempt_id(), 11u);
  EXPECT_EQ(delta.index(), 0u);
  EXPECT_EQ(delta.token_id(), toy::kEnd);
  EXPECT_EQ(delta.logprob(), -0.25f);
  ASSERT_EQ(delta.top_logprobs_size(), 2);
  EXPECT_EQ(delta.top_logprobs(1).token_id(), 7u);
  EXPECT_EQ(delta.finish().reason(), v1::FINISH_REASON_STOP);
}

}  // namespace
}  // namespace baton
