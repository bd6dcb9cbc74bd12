#include "common/engine/draft_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/common/engine/poisoned_engine.h"

namespace baton {
namespace {

using testing::SizeIs;

class DraftRunTest : public testing::Test, protected PoisonedEngine {
 protected:
  void SetUp() override { LoadEngine(32); }
  DraftSpan Span(std::vector<TokenId> tokens, uint32_t count) {
    kv_.emplace_back(loaded_.model->kv_layout(), 64);
    DraftSpan span;
    span.count = count;
    if (count > 0) {
      SamplingParams params;
      params.seed = 5;
      params.frequency_penalty = 1;
      DrawRequest draw;
      draw.params = std::make_shared<const SamplingParams>(params);
      draw.position = tokens.size();
      span.known.draws.push_back(draw);
    }
    span.known.tokens = std::move(tokens);
    span.known.blocks = kv_.back().blocks();
    return span;
  }
  // The same tokens, each from a pass over all before it.
  std::vector<TokenId> OneByOne(const DraftSpan& span) {
    StepSpan whole = Span(span.known.tokens, span.count).known;
    std::vector<TokenId> tokens;
    for (uint32_t i = 0; i < span.count; ++i) {
      const auto result = engine_->Step({&whole, 1});
      EXPECT_TRUE(result.ok()) << result.status();
      tokens.push_back(result->spans[0].draws.at(0).token);
      whole.draws[0].Advance(tokens.back());
      whole.tokens.push_back(tokens.back());
    }
    return tokens;
  }

  std::vector<SequenceKv> kv_;
};

TEST_F(DraftRunTest, GuessesTokenAfterTokenTogether) {
  const std::vector<DraftSpan> spans = {Span({1, 50, 60}, 4), Span({7}, 0),
                                        Span({9, 8, 7, 6, 5}, 1),
                                        Span({20, 21}, 6)};
  const DraftRun run = RunDrafts(engine_.get(), spans);
  ASSERT_THAT(run.spans, SizeIs(4));
  EXPECT_THAT(run.elapsed, SizeIs(6)) << "passes";
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(run.spans[i].status, absl::OkStatus());
    ASSERT_THAT(run.spans[i].guesses, SizeIs(spans[i].count));
    EXPECT_EQ(run.spans[i].guesses, OneByOne(spans[i]));
  }
}

TEST_F(DraftRunTest, BrokenNumbersEndTheGuessesOfThatSequence) {
  const std::vector<DraftSpan> spans = {
      Span({1, kPoisoned}, 4), Span({1, 2}, 4), Span({1, kPoisoned}, 0)};
  const DraftRun run = RunDrafts(engine_.get(), spans);
  EXPECT_EQ(run.spans[0].status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(run.spans[0].guesses, SizeIs(0));
  EXPECT_EQ(run.spans[1].status, absl::OkStatus());
  EXPECT_THAT(run.spans[1].guesses, SizeIs(4));
  EXPECT_EQ(run.spans[2].status.code(), absl::StatusCode::kInternal)
      << "KV that nobody guesses from yet";
}

TEST_F(DraftRunTest, AGuessThatBreaksTheNumbersEndsTheRun) {
  DraftSpan span = Span({1, 2}, 4);
  SamplingParams params;
  params.logit_bias = {{kPoisoned, 1000}};
  span.known.draws[0].params = std::make_shared<const SamplingParams>(params);
  const DraftRun run = RunDrafts(engine_.get(), {&span, 1});
  EXPECT_THAT(run.spans[0].guesses, testing::ElementsAre(kPoisoned));
  EXPECT_EQ(run.spans[0].status.code(), absl::StatusCode::kInternal);
}

TEST_F(DraftRunTest, SaysWhatTheEngineRefuses) {
  const std::vector<DraftSpan> spans = {Span({1, 2}, 2), Span({9999}, 2),
                                        Span({3}, 0)};
  const DraftRun run = RunDrafts(engine_.get(), spans);
  ASSERT_THAT(run.spans, SizeIs(3));
  for (const DraftRun::Span& span : run.spans) {
    EXPECT_EQ(span.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(span.guesses, SizeIs(0));
  }
  EXPECT_THAT(RunDrafts(engine_.get(), {}).spans, SizeIs(0));
}

// A later pass is refused: what was guessed before it stays.
TEST_F(DraftRunTest, KeepsWhatWasGuessedBeforeARefusal) {
  std::vector<DraftSpan> spans = {Span({1, 2}, 3), Span({5, 6}, 1),
                                  Span({7, 8}, 3)};
  spans[2].known.first_position =
      static_cast<uint32_t>(loaded_.model->config().context) - 3;
  spans[2].known.blocks.resize(BlocksFor(loaded_.model->config().context),
                               spans[2].known.blocks[0]);
  const DraftRun run = RunDrafts(engine_.get(), spans);
  EXPECT_THAT(run.spans[0].guesses, SizeIs(2));
  EXPECT_EQ(run.spans[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(run.spans[1].guesses, SizeIs(1));
  EXPECT_EQ(run.spans[1].status, absl::OkStatus());
  EXPECT_THAT(run.spans[2].guesses, SizeIs(2));
  EXPECT_EQ(run.spans[2].status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
