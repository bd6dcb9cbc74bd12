#include "common/worker/step_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "common/kv_cache/kv_lanes.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/model_under_test.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

class StepDriverTest : public testing::Test {
 protected:
  void SetUp() override { Load(kernels::KvType::kF16); }
  void Load(kernels::KvType kv_type) {
    auto path = WriteTinyModel(testing::TempDir(), {});
    ASSERT_TRUE(path.ok()) << path.status();
    auto loaded = ModelUnderTest::Load(*path, kernels::MakeReferenceBackend(),
                                       {.kv_type = kv_type});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loaded_ = *std::move(loaded);
    memory_ = *KvMemory::Create(loaded_.model->kv_layout(), 8);
    for (std::byte& b : memory_->all()) b = std::byte{0x5a};
  }
  StepDone Run(StepPlan plan) {
    std::promise<StepDone> done;
    StepDriver driver(loaded_.model.get(), memory_.get(), 32,
                      [&](StepDone d) { done.set_value(std::move(d)); });
    driver.Run(std::move(plan), pool_);
    return done.get_future().get();
  }
  bool All(BlockId block, std::byte value) {
    const auto span = memory_->BlockSpan(block);
    return std::all_of(span.begin(), span.end(),
                       [&](std::byte b) { return b == value; });
  }

  ModelUnderTest loaded_;
  std::unique_ptr<KvMemory> memory_;
  BlockPool pool_{WorkerEpoch(1), 8};
};

TEST_F(StepDriverTest, ClearsThenCopiesThenComputes) {
  auto blocks = *pool_.Acquire(4, BlockUse::kRunning);
  StepPlan plan;
  plan.number = 3;
  plan.cleared = {blocks[0], blocks[1]};
  plan.copies = {{blocks[1], blocks[2]}};
  PlannedSpan span;
  span.tokens = {5, 6, 7};
  span.blocks = {blocks[0]};
  plan.spans.push_back(span);
  const StepDone done = Run(std::move(plan));
  EXPECT_EQ(done.number, 3u);
  ASSERT_EQ(done.result.spans.size(), 1u);
  EXPECT_TRUE(done.result.spans[0].status.ok());
  EXPECT_FALSE(All(blocks[0].id, std::byte{0})) << "the span wrote its KV";
  EXPECT_TRUE(All(blocks[1].id, std::byte{0}));
  EXPECT_TRUE(All(blocks[2].id, std::byte{0}));
  EXPECT_TRUE(All(blocks[3].id, std::byte{0x5a}));
}

// What a rejected draft left in its block is what was there before.
TEST_F(StepDriverTest, ClearsTheKvOfRejectedDrafts) {
  for (const kernels::KvType type : kernels::kAllKvTypes) {
    Load(type);
    auto blocks = *pool_.Acquire(6, BlockUse::kRunning);
    std::vector<TokenId> prompt(13, 7);
    const auto run = [&](size_t sequence, std::vector<TokenId> tokens,
                         bool drafted) {
      StepPlan plan;
      plan.number = 1;
      const auto own = blocks.begin() + static_cast<int>(3 * sequence);
      PlannedSpan span;
      span.first_position = drafted || tokens.size() == 1 ? 13 : 0;
      if (span.first_position == 0) plan.cleared.assign(own, own + 3);
      span.tokens = std::move(tokens);
      span.drafted = drafted;
      span.blocks.assign(own, own + 3);
      DrawRequest draw;
      SamplingParams greedy;
      greedy.temperature = 0;
      draw.params = std::make_shared<const SamplingParams>(greedy);
      span.draws = {draw};
      plan.spans = {span};
      StepDone done = Run(std::move(plan));
      EXPECT_TRUE(done.result.spans.at(0).status.ok());
      return done.result.spans.at(0).draws;
    };
    run(0, prompt, false);
    run(1, prompt, false);
    const TokenId next = run(0, {9}, false).at(0).token;
    const TokenId wrong = next == 30 ? 31 : 30;
    ASSERT_EQ(run(1, std::vector<TokenId>(20, wrong), true).size(), 1u);
    for (size_t i = 0; i < 3; ++i) {
      const auto plain = memory_->BlockSpan(blocks[i].id);
      const auto drafted = memory_->BlockSpan(blocks[3 + i].id);
      EXPECT_EQ(i == 0, !All(blocks[i].id, std::byte{0}));
      // The first token of the two is not the same.
      EXPECT_EQ(
          i == 0 ? 0 : std::memcmp(plain.data(), drafted.data(), plain.size()),
          0);
    }
    run(1, {9}, false);
    EXPECT_EQ(
        std::memcmp(memory_->Block(blocks[0].id), memory_->Block(blocks[3].id),
                    memory_->layout().block_bytes()),
        0)
        << kernels::KvTypeName(type);
    ASSERT_TRUE(pool_.Release(blocks, BlockUse::kRunning).ok());
  }
}

// Blocks of the draft model that choices share the start of, and runs of it
// that fail, of which the others hear nothing.
TEST_F(StepDriverTest, CopiesTheStartOfDraftBlocksAndReportsRuns) {
  auto draft_memory = *KvMemory::Create(loaded_.model->kv_layout(), 8);
  for (std::byte& b : draft_memory->all()) b = std::byte{0x5a};
  BlockPool draft_pool(WorkerEpoch(2), 8);
  const auto drafts = *draft_pool.Acquire(4, BlockUse::kRunning);
  const auto blocks = *pool_.Acquire(2, BlockUse::kRunning);
  StepPlan plan;
  plan.number = 1;
  plan.cleared = blocks;
  plan.draft_cleared = {drafts[2], drafts[3]};
  plan.draft_copies = {{drafts[0], drafts[1], 5}};
  SamplingParams greedy;
  greedy.temperature = 0;
  DrawRequest draw;
  draw.params = std::make_shared<const SamplingParams>(greedy);
  for (size_t i = 0; i < 2; ++i) {
    PlannedSpan span;
    span.tokens = {7};
    span.drafted = true;
    span.blocks = {blocks[i]};
    span.draws = {draw};
    plan.spans.push_back(span);
    PlannedDraft draft;
    draft.span = i;
    draft.count = 2;
    draft.known = span;
    draft.known.drafted = false;
    draft.known.blocks = {drafts[2 + i]};
    plan.drafts.push_back(draft);
  }
  plan.drafts[1].known.draws.clear();
  plan.drafts[1].count = 0;
  const uint32_t number = 33;  // more rows than a pass may have
  StepPlan refused = plan;
  refused.drafts[1].known.tokens.assign(number, 7);
  refused.drafts[1].known.blocks = {drafts[3], drafts[3], drafts[3]};

  const auto run = [&](StepPlan of) {
    std::promise<StepDone> done;
    StepDriver driver(loaded_.model.get(), memory_.get(), 32,
                      [&](StepDone d) { done.set_value(std::move(d)); },
                      {loaded_.model.get(), draft_memory.get()});
    driver.Run(std::move(of), pool_, &draft_pool);
    return done.get_future().get();
  };
  StepDone done = run(plan);
  ASSERT_EQ(done.result.drafts.size(), 2u);
  EXPECT_TRUE(done.result.drafts[0].ok());
  EXPECT_TRUE(done.result.drafts[1].ok());
  EXPECT_EQ(done.result.spans[0].guesses, 2u);
  EXPECT_EQ(done.result.draft_elapsed.size(), 2u);
  // The model over itself gives the same KV at the same positions.
  std::byte* expected = memory_->Block(blocks[1].id);
  std::memset(expected, 0x5a, memory_->layout().block_bytes());
  ClearPositions(memory_->layout(), {&expected, 1}, 5, 16);
  EXPECT_EQ(std::memcmp(draft_memory->Block(drafts[1].id), expected,
                        memory_->layout().block_bytes()),
            0);

  done = run(refused);
  ASSERT_EQ(done.result.drafts.size(), 2u);
  for (const absl::Status& status : done.result.drafts) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(done.result.spans[0].guesses, 0u);
  EXPECT_EQ(done.result.spans[0].draws.size(), 1u);
}

TEST_F(StepDriverTest, StaleReferenceTouchesNothing) {
  auto blocks = *pool_.Acquire(2, BlockUse::kRunning);
  ASSERT_TRUE(pool_.Release({&blocks[1], 1}, BlockUse::kRunning).ok());
  StepPlan plan;
  plan.number = 1;
  plan.cleared = {blocks[0]};
  PlannedSpan span;
  span.tokens = {5};
  span.blocks = {blocks[1]};
  plan.spans = {span, span};
  const StepDone done = Run(std::move(plan));
  ASSERT_EQ(done.result.spans.size(), 2u);
  for (const SpanResult& result : done.result.spans) {
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  }
  EXPECT_TRUE(All(blocks[0].id, std::byte{0x5a}));
  EXPECT_TRUE(All(blocks[1].id, std::byte{0x5a}));
}

TEST_F(StepDriverTest, StepTheEngineRefusesFailsEverySpan) {
  auto blocks = *pool_.Acquire(3, BlockUse::kRunning);
  StepPlan plan;
  PlannedSpan span;
  span.tokens.assign(33, 5);
  span.blocks = blocks;
  plan.spans = {span};
  const StepDone done = Run(std::move(plan));
  ASSERT_EQ(done.result.spans.size(), 1u);
  EXPECT_EQ(done.result.spans[0].status.code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace baton
