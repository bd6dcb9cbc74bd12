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
  const auto run = RunDrafts(engine_.get(), spans);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_THAT(run->guesses, SizeIs(4));
  EXPECT_THAT(run->elapsed, SizeIs(6)) << "passes";
  for (size_t i = 0; i < spans.size(); ++i) {
    ASSERT_THAT(run->guesses[i], SizeIs(spans[i].count));
    EXPECT_EQ(run->guesses[i], OneByOne(spans[i]));
  }
}

TEST_F(DraftRunTest, BrokenNumbersEndTheGuessesOfThatSequence) {
  const std::vector<DraftSpan> spans = {Span({1, kPoisoned}, 4),
                                        Span({1, 2}, 4)};
  const auto run = RunDrafts(engine_.get(), spans);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->guesses[0], SizeIs(0));
  EXPECT_THAT(run->guesses[1], SizeIs(4));
}

TEST_F(DraftRunTest, RefusesWhatTheEngineDoes) {
  const std::vector<DraftSpan> spans = {Span({9999}, 2)};
  EXPECT_EQ(RunDrafts(engine_.get(), spans).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(RunDrafts(engine_.get(), {}).ok());
}

}  // namespace
}  // namespace baton
