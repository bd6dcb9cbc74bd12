#include "common/engine/engine.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/engine/poisoned_engine.h"

namespace baton {
namespace {

using testing::HasSubstr;

constexpr uint32_t kMaxRows = 32;

std::shared_ptr<const SamplingParams> Greedy(bool logprobs) {
  SamplingParams params;
  params.temperature = 0;
  params.logprobs = logprobs;
  return std::make_shared<const SamplingParams>(params);
}

DrawRequest Draw(std::shared_ptr<const SamplingParams> params,
                 uint64_t position) {
  DrawRequest draw;
  draw.params = std::move(params);
  draw.position = position;
  return draw;
}

class EngineTest : public testing::Test, protected PoisonedEngine {
 protected:
  void SetUp() override { LoadEngine(kMaxRows); }

  // A span of a new sequence, with room for `tokens.size() + 16` positions.
  StepSpan Span(std::vector<TokenId> tokens, std::vector<DrawRequest> draws) {
    kv_.emplace_back(loaded_.model->kv_layout(), tokens.size() + 16);
    return {.tokens = std::move(tokens),
            .first_position = 0,
            .blocks = kv_.back().blocks(),
            .draws = std::move(draws)};
  }

  void ExpectInvalid(const StepSpan& span, const std::string& message) {
    const auto result = engine_->Step({&span, 1});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
  }

  std::vector<SequenceKv> kv_;
};

TEST_F(EngineTest, DrawsTheArgMaxOfTheLastRowWithItsLogprob) {
  const std::vector<TokenId> tokens = {1, 104, 50, 7};
  const StepSpan span = Span(tokens, {Draw(Greedy(true), 4)});
  const auto result = engine_->Step({&span, 1});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->spans.size(), 1u);
  ASSERT_TRUE(result->spans[0].status.ok());
  ASSERT_EQ(result->spans[0].draws.size(), 1u);
  EXPECT_GT(result->elapsed.count(), 0);

  ForEachLogits(*loaded_.model, tokens, 4, 3,
                [&](int, absl::Span<const float> logits) {
                  const SampledToken& drawn = result->spans[0].draws[0];
                  EXPECT_EQ(drawn.token, ArgMax(logits));
                  EXPECT_NEAR(drawn.logprob,
                              logits[drawn.token] - LogSumExp(logits), 1e-5);
                });
}

TEST_F(EngineTest, SpansOfAMixedStepEqualThoseAlone) {
  std::vector<StepSpan> spans;
  spans.push_back(Span({1, 2, 3, 4, 5}, {Draw(Greedy(true), 5)}));
  spans.push_back(Span({9, 8}, {}));
  spans.push_back(Span({200}, {Draw(Greedy(true), 1), Draw(Greedy(true), 1)}));
  const auto mixed = engine_->Step(spans);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  ASSERT_EQ(mixed->spans.size(), 3u);
  EXPECT_TRUE(mixed->spans[1].draws.empty());
  EXPECT_EQ(mixed->spans[2].draws.size(), 2u);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    const StepSpan alone = Span(spans[i].tokens, spans[i].draws);
    const auto result = engine_->Step({&alone, 1});
    ASSERT_TRUE(result.ok());
    for (size_t d = 0; d < spans[i].draws.size(); ++d) {
      EXPECT_EQ(result->spans[0].draws[d].token,
                mixed->spans[i].draws[d].token);
      EXPECT_EQ(result->spans[0].draws[d].logprob,
                mixed->spans[i].draws[d].logprob);
    }
  }
}

TEST_F(EngineTest, DecodeContinuesWhatPrefillStored) {
  StepSpan first = Span({1, 104, 50}, {});
  ASSERT_TRUE(engine_->Step({&first, 1}).ok());
  StepSpan next{.tokens = {7},
                .first_position = 3,
                .blocks = first.blocks,
                .draws = {Draw(Greedy(true), 4)}};
  const StepSpan whole = Span({1, 104, 50, 7}, {Draw(Greedy(true), 4)});
  const auto continued = engine_->Step({&next, 1});
  const auto at_once = engine_->Step({&whole, 1});
  ASSERT_TRUE(continued.ok() && at_once.ok());
  EXPECT_EQ(continued->spans[0].draws[0].token,
            at_once->spans[0].draws[0].token);
  EXPECT_EQ(continued->spans[0].draws[0].logprob,
            at_once->spans[0].draws[0].logprob);
}

// What FreedBlocks leaves in a block is found by whoever still reads it.
TEST_F(EngineTest, AReadOfAFreedBlockIsDetected) {
  StepSpan span = Span(std::vector<TokenId>(16, 7), {});
  ASSERT_TRUE(engine_->Step({&span, 1})->spans[0].status.ok());
  StepSpan next = span;
  next.tokens = {5};
  next.first_position = 16;
  ASSERT_TRUE(engine_->Step({&next, 1})->spans[0].status.ok());
  std::memset(span.blocks[0], 0xff, loaded_.model->kv_layout().block_bytes());
  EXPECT_EQ(engine_->Step({&next, 1})->spans[0].status.code(),
            absl::StatusCode::kInternal);
}

TEST_F(EngineTest, LittleMemoryForLogitsChangesNothing) {
  std::vector<StepSpan> spans;
  for (TokenId i = 0; i < 7; ++i) {
    spans.push_back(Span({1, 20 + i}, {Draw(Greedy(true), 2)}));
    if (i % 2 == 0) spans.push_back(Span({30 + i}, {}));
  }
  const auto at_once = engine_->Step(spans);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  for (const size_t rows : {0, 1, 2, 3}) {
    Engine engine(loaded_.model.get(), kMaxRows, rows * 272 * sizeof(float));
    const auto in_parts = engine.Step(spans);
    ASSERT_TRUE(in_parts.ok()) << in_parts.status();
    for (size_t i = 0; i < spans.size(); ++i) {
      const auto& expected = at_once->spans[i].draws;
      const auto& actual = in_parts->spans[i].draws;
      ASSERT_EQ(actual.size(), expected.size());
      if (actual.empty()) continue;
      EXPECT_EQ(actual[0].token, expected[0].token);
      EXPECT_EQ(actual[0].logprob, expected[0].logprob);
    }
  }
}

TEST_F(EngineTest, NonfiniteRowsFailTheirSpanOnly) {
  std::vector<StepSpan> spans;
  spans.push_back(Span({1, 2}, {Draw(Greedy(true), 2)}));
  spans.push_back(Span({1, kPoisoned}, {Draw(Greedy(true), 2)}));
  spans.push_back(Span({1, 2}, {Draw(Greedy(true), 2)}));
  const auto result = engine_->Step(spans);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->spans[0].status.ok());
  EXPECT_EQ(result->spans[1].status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(result->spans[1].draws.empty());
  ASSERT_TRUE(result->spans[2].status.ok());
  EXPECT_EQ(result->spans[0].draws[0].token, result->spans[2].draws[0].token);
}

TEST_F(EngineTest, NonfiniteRowsFailASpanWithoutDrawsToo) {
  const StepSpan span = Span({kPoisoned, 1}, {});
  const auto result = engine_->Step({&span, 1});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->spans[0].status.code(), absl::StatusCode::kInternal);
}

TEST_F(EngineTest, RefusesWhatItCannotRun) {
  ExpectInvalid(Span({}, {}), "spans[0].tokens: too few (got 0, allowed 1)");
  ExpectInvalid(Span({1, 272}, {}),
                "spans[0].tokens: outside the vocabulary (got 272, allowed "
                "271)");
  ExpectInvalid(Span(std::vector<TokenId>(kMaxRows + 1, 5), {}),
                "spans: too many rows (got 33, allowed 32)");
  ExpectInvalid(Span({1}, {DrawRequest{}}),
                "spans[0].draws: without parameters");

  StepSpan late = Span({1, 2}, {});
  late.first_position = 255;
  ExpectInvalid(late,
                "spans[0].first_position: beyond the context (got 257, "
                "allowed 256)");
  late.first_position = 0xFFFFFFFF;
  ExpectInvalid(late, "beyond the context (got 4294967297, allowed 256)");
  late.first_position = 31;
  ExpectInvalid(late, "spans[0].blocks: too few (got 2, allowed 3)");
}

TEST_F(EngineTest, NothingToDoIsFine) {
  const auto result = engine_->Step({});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->spans.empty());
  EXPECT_EQ(engine_->max_rows(), kMaxRows);
}

}  // namespace
}  // namespace baton
