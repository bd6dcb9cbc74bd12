// Drafts decide how many tokens a step gives, never which.
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/common/engine/poisoned_engine.h"

namespace baton {
namespace {

constexpr uint32_t kMaxRows = 32;
constexpr int kLength = 12;

// Everything that may differ from row to row.
std::shared_ptr<const SamplingParams> AllParams(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = 60;
  params.top_p = 0.95f;
  params.min_p = 0.001f;
  params.repetition_penalty = 1.3f;
  params.presence_penalty = 0.4f;
  params.frequency_penalty = 0.7f;
  params.seed = 77;
  params.logprobs = true;
  params.top_logprobs = 3;
  params.logit_bias = {{40, 1.5f}, {41, -2.0f}};
  return std::make_shared<const SamplingParams>(params);
}

class DraftedSpanTest : public testing::TestWithParam<float>,
                        protected PoisonedEngine {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(LoadEngine(kMaxRows));
    Generate();
  }

  // The draw after prompt and truth_[0 .. generated - 1].
  DrawRequest DrawAfter(size_t generated) const {
    DrawRequest draw;
    draw.params = AllParams(GetParam());
    draw.counts.AddPrompt(prompt_);
    for (size_t i = 0; i < generated; ++i) {
      draw.counts.AddOutput(truth_[i].token);
    }
    draw.choice = 2;
    draw.position = prompt_.size() + generated;
    draw.banned = {static_cast<TokenId>(allowed_first_)};
    draw.banned_before = prompt_.size() + kBannedTokens;
    return draw;
  }

  SpanResult Run(std::vector<TokenId> tokens, uint32_t first, bool drafted,
                 DrawRequest draw) {
    const StepSpan span{.tokens = std::move(tokens),
                        .drafted = drafted,
                        .first_position = first,
                        .blocks = kv_->blocks(),
                        .draws = {std::move(draw)}};
    auto result = engine_->Step({&span, 1});
    EXPECT_TRUE(result.ok()) << result.status();
    return std::move(result->spans.at(0));
  }
  SpanResult Prefill() {
    kv_ = std::make_unique<SequenceKv>(loaded_.model->kv_layout(), 64);
    return Run(prompt_, 0, false, DrawAfter(0));
  }

  // One token per step. The ban is of the token that would come first.
  void Generate() {
    allowed_first_ = kNoToken;
    allowed_first_ = Prefill().draws.at(0).token;
    truth_.push_back(Prefill().draws.at(0));
    for (int i = 1; i < kLength; ++i) {
      truth_.push_back(Run({truth_.back().token},
                           static_cast<uint32_t>(prompt_.size() + i - 1), false,
                           DrawAfter(i))
                           .draws.at(0));
    }
    EXPECT_NE(truth_[0].token, allowed_first_);
  }

  // truth_[0] and `count` guesses after it, of which the one at `wrong` is.
  std::vector<TokenId> Guesses(size_t count, size_t wrong) const {
    std::vector<TokenId> tokens = {truth_[0].token};
    for (size_t i = 0; i < count; ++i) {
      const TokenId token = truth_[i + 1].token;
      tokens.push_back(i == wrong ? (token + 1) % 90 : token);
    }
    return tokens;
  }

  void ExpectTruth(const std::vector<SampledToken>& run, size_t length) const {
    ASSERT_EQ(run.size(), length);
    for (size_t i = 0; i < length; ++i) {
      const SampledToken& expected = truth_[i + 1];
      EXPECT_EQ(run[i].token, expected.token) << i;
      EXPECT_EQ(std::bit_cast<uint32_t>(run[i].logprob),
                std::bit_cast<uint32_t>(expected.logprob));
      ASSERT_EQ(run[i].top.size(), 3u);
      for (size_t t = 0; t < 3; ++t) {
        EXPECT_EQ(run[i].top[t].token, expected.top[t].token);
        EXPECT_EQ(std::bit_cast<uint32_t>(run[i].top[t].logprob),
                  std::bit_cast<uint32_t>(expected.top[t].logprob));
      }
    }
  }

  static constexpr TokenId kNoToken = 271;
  static constexpr uint64_t kBannedTokens = 3;
  const std::vector<TokenId> prompt_ = {1, 50, 60, 70, 50, 60};
  std::unique_ptr<SequenceKv> kv_;
  TokenId allowed_first_ = kNoToken;
  std::vector<SampledToken> truth_;
};

TEST_P(DraftedSpanTest, GivesTheTokensOfOneByOne) {
  for (size_t drafts = 0; drafts < kLength - 1; ++drafts) {
    for (size_t wrong = 0; wrong <= drafts; ++wrong) {
      SCOPED_TRACE(testing::Message() << drafts << " drafts, wrong " << wrong);
      Prefill();
      const SpanResult result =
          Run(Guesses(drafts, wrong), static_cast<uint32_t>(prompt_.size()),
              true, DrawAfter(1));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ExpectTruth(result.draws, wrong + 1);
    }
  }
}

TEST_P(DraftedSpanTest, LittleMemoryForLogitsChangesNothing) {
  for (const size_t rows : {0, 1, 2, 3}) {
    engine_ = std::make_unique<Engine>(loaded_.model.get(), kMaxRows,
                                       rows * 272 * sizeof(float));
    Prefill();
    const std::unique_ptr<SequenceKv> first = std::move(kv_);
    Prefill();
    std::vector<StepSpan> spans(2);
    for (StepSpan& span : spans) {
      span.drafted = true;
      span.first_position = static_cast<uint32_t>(prompt_.size());
      span.draws = {DrawAfter(1)};
    }
    spans[0].tokens = Guesses(6, 1);
    spans[0].blocks = first->blocks();
    spans[1].tokens = Guesses(5, 5);
    spans[1].blocks = kv_->blocks();
    const auto result = engine_->Step(spans);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectTruth(result->spans[0].draws, 2);
    ExpectTruth(result->spans[1].draws, 6);
  }
}

// A guess that breaks the numbers breaks the step, and nothing is drawn.
TEST_P(DraftedSpanTest, NonfiniteGuessesGiveNothing) {
  Prefill();
  const SpanResult result =
      Run({truth_[0].token, kPoisoned}, static_cast<uint32_t>(prompt_.size()),
          true, DrawAfter(1));
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(result.draws.empty());
}

TEST_P(DraftedSpanTest, WantsOneDraw) {
  StepSpan span;
  span.tokens = {5, 6};
  span.drafted = true;
  span.blocks = kv_->blocks();
  for (const size_t draws : {0, 2}) {
    span.draws.assign(draws, DrawAfter(0));
    const auto result = engine_->Step({&span, 1});
    EXPECT_EQ(result.status().message(),
              "spans[0].draws: not one draw for drafts (got " +
                  std::to_string(draws) + ", allowed 1)");
  }
}

INSTANTIATE_TEST_SUITE_P(Temperatures, DraftedSpanTest,
                         testing::Values(0.0f, 0.8f),
                         [](const auto& temperature) {
                           return temperature.param == 0 ? "greedy" : "seeded";
                         });

}  // namespace
}  // namespace baton
