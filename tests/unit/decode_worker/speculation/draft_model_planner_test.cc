#include "decode_worker/speculation/draft_model_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::decode {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr DraftModelPlanner::Key kFirst{JobId(1), 0}, kSecond{JobId(2), 0};

Sequence MakeSequence(uint32_t prompt) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->bytes = [](TokenId, bool) { return std::string_view("x"); };
  vocabulary->size = 1000;
  auto params = std::make_shared<SequenceParams>();
  for (uint32_t i = 0; i < prompt; ++i) params->prompt.push_back(100 + i);
  params->max_tokens = 1000;
  params->sampling.logprobs = true;
  params->sampling.temperature = 0.5f;
  return Sequence(params, vocabulary, 0, {});
}

DraftModelOptions Options(uint32_t blocks = 16) {
  return {.blocks = blocks,
          .max_positions = 256,
          .max_rows = 64,
          .tokens_per_step = 32};
}

class DraftModelPlannerTest : public testing::Test {
 protected:
  StepPlan Plan(DraftModelPlanner& planner, const DraftModelPlanner::Key& key,
                const Sequence& sequence, uint32_t count) {
    StepPlan plan;
    planner.BeginStep(Duration::zero(), Duration::max());
    planned_ = PlanOne(planner, key, sequence, 0, count, &plan);
    return plan;
  }
  // Has the text read where guesses are wanted.
  static uint32_t PlanOne(DraftModelPlanner& planner,
                          const DraftModelPlanner::Key& key,
                          const Sequence& sequence, size_t span, uint32_t count,
                          StepPlan* plan) {
    if (count > 0 && planner.Unread(key, sequence)) {
      const bool all = planner.Read(key, sequence, plan);
      EXPECT_TRUE(all || planner.Plan(key, sequence, span, 0, plan) == 0);
      if (!all) return 0;
    }
    return planner.Plan(key, sequence, span, count, plan);
  }
  uint32_t planned_ = 0;
};

TEST_F(DraftModelPlannerTest, ReadsThePromptInChunksThenGuesses) {
  DraftModelPlanner planner(WorkerEpoch(1), Options());
  const Sequence sequence = MakeSequence(70);
  std::vector<uint32_t> first, known, counts;
  for (int i = 0; i < 3; ++i) {
    const StepPlan plan = Plan(planner, kFirst, sequence, 3);
    ASSERT_THAT(plan.drafts, SizeIs(1));
    const PlannedDraft& draft = plan.drafts[0];
    first.push_back(draft.known.first_position);
    known.push_back(static_cast<uint32_t>(draft.known.tokens.size()));
    counts.push_back(draft.count);
    EXPECT_EQ(draft.count, planned_);
    EXPECT_EQ(draft.known.tokens[0], 100 + draft.known.first_position);
    EXPECT_THAT(draft.known.draws, SizeIs(draft.count > 0 ? 1 : 0));
  }
  EXPECT_THAT(first, ElementsAre(0, 32, 64));
  EXPECT_THAT(known, ElementsAre(32, 32, 6));
  EXPECT_THAT(counts, ElementsAre(0, 0, 3));
}

TEST_F(DraftModelPlannerTest, DrawsAsTheTargetDoesButForLogprobs) {
  DraftModelPlanner planner(WorkerEpoch(1), Options());
  const StepPlan plan = Plan(planner, kFirst, MakeSequence(9), 3);
  const DrawRequest& draw = plan.drafts.at(0).known.draws.at(0);
  EXPECT_EQ(draw.position, 9u);
  EXPECT_FALSE(draw.params->logprobs);
  EXPECT_EQ(draw.params->temperature, 0.5f);
}

TEST_F(DraftModelPlannerTest, GoesOnBehindWhatWasRight) {
  for (uint32_t right = 0; right <= 3; ++right) {
    DraftModelPlanner planner(WorkerEpoch(1), Options());
    Sequence sequence = MakeSequence(9);
    Plan(planner, kFirst, sequence, 3);
    planner.Observe(kFirst, 3, right);
    for (uint32_t i = 0; i <= right; ++i) sequence.Append(500 + i);
    const StepPlan plan = Plan(planner, kFirst, sequence, 3);
    const PlannedSpan& known = plan.drafts.at(0).known;
    // The third guess was not computed.
    EXPECT_EQ(known.first_position, 9 + std::min(right, 2u));
    EXPECT_THAT(known.tokens, SizeIs(right == 3 ? 2 : 1));
    EXPECT_EQ(known.tokens.back(), 500 + right);
    EXPECT_EQ(planned_, 3u);
  }
}

TEST_F(DraftModelPlannerTest, BlocksCoverAllButTheLastGuess) {
  DraftModelPlanner planner(WorkerEpoch(1), Options());
  StepPlan plan = Plan(planner, kFirst, MakeSequence(15), 2);
  EXPECT_THAT(plan.drafts.at(0).known.blocks, SizeIs(1));
  EXPECT_THAT(plan.draft_cleared, SizeIs(1));
  plan = Plan(planner, kSecond, MakeSequence(15), 3);
  EXPECT_THAT(plan.drafts.at(0).known.blocks, SizeIs(2));
  EXPECT_EQ(plan.draft_cleared, plan.drafts.at(0).known.blocks);
  EXPECT_EQ(planner.pool().ledger()[BlockUse::kRunning], 3u);
  planner.KeepOnly({kSecond});
  EXPECT_EQ(planner.pool().ledger()[BlockUse::kRunning], 2u);
  planner.KeepOnly({});
  EXPECT_EQ(planner.pool().ledger().free, 16u);
}

TEST_F(DraftModelPlannerTest, WithoutBlocksThereAreNoGuesses) {
  DraftModelPlanner planner(WorkerEpoch(1), Options(1));
  Sequence sequence = MakeSequence(15);
  const StepPlan reading = Plan(planner, kFirst, sequence, 4);
  EXPECT_THAT(reading.drafts, SizeIs(1)) << "there is one for the text";
  EXPECT_EQ(planned_, 0u);
  sequence.Append(7);
  EXPECT_THAT(Plan(planner, kFirst, sequence, 4).drafts, IsEmpty());
  Plan(planner, kFirst, sequence, 1);
  EXPECT_EQ(planned_, 1u);
  EXPECT_THAT(Plan(planner, kSecond, sequence, 1).drafts, IsEmpty());
}

TEST_F(DraftModelPlannerTest, RowsOfAPassAreBounded) {
  DraftModelOptions options = Options(64);
  options.max_rows = 40;
  options.tokens_per_step = 32;
  DraftModelPlanner planner(WorkerEpoch(1), options);
  const Sequence sequence = MakeSequence(30);
  StepPlan plan;
  planner.BeginStep(Duration::zero(), Duration::max());
  uint64_t rows = 0;
  for (uint64_t job = 1; job <= 4; ++job) {
    PlanOne(planner, {JobId(job), 0}, sequence, 0, 2, &plan);
  }
  for (const PlannedDraft& draft : plan.drafts) {
    rows += draft.known.tokens.size();
  }
  EXPECT_EQ(rows, 32u);
}

// Reading takes a part of the step and of what it may grow by, at least a
// block.
TEST_F(DraftModelPlannerTest, ReadingStaysWithinTheStep) {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(64, 256)) {
    const double seconds = 1e-3 + 1e-4 * step.rows();
    probes.push_back({std::move(step), seconds});
  }
  using std::chrono::milliseconds;
  const auto read = [&](Duration step, Duration spare) {
    DraftModelOptions options = Options();
    options.costs = CostModel(probes);
    DraftModelPlanner planner(WorkerEpoch(1), options);
    planner.Acceptance(kFirst, MakeSequence(200), 1);
    planner.BeginStep(step, spare);
    StepPlan plan;
    PlanOne(planner, kFirst, MakeSequence(200), 0, 2, &plan);
    return plan.drafts.empty() ? 0 : plan.drafts[0].known.tokens.size();
  };
  EXPECT_EQ(read(milliseconds(100), Duration::max()), 32u);
  EXPECT_EQ(read(milliseconds(1), Duration::max()), 16u) << "it goes on";
  const size_t half = read(milliseconds(6), Duration::max());
  EXPECT_GT(half, 16u);
  EXPECT_LT(half, 32u);
  EXPECT_EQ(read(milliseconds(6), milliseconds(10)), half);
  EXPECT_EQ(read(milliseconds(100), milliseconds(6)), half);
  EXPECT_EQ(read(milliseconds(6), milliseconds(2)), 16u);
  EXPECT_EQ(read(milliseconds(6), std::chrono::nanoseconds(1)), 16u);
  EXPECT_EQ(read(milliseconds(6), Duration::zero()), 0u);
  EXPECT_EQ(read(milliseconds(6), milliseconds(-5)), 0u);
}

TEST_F(DraftModelPlannerTest, OffersNothingBehindItsContext) {
  DraftModelOptions options = Options();
  options.max_positions = 20;
  DraftModelPlanner planner(WorkerEpoch(1), options);
  EXPECT_THAT(planner.Acceptance(kFirst, MakeSequence(10), 5), SizeIs(5));
  EXPECT_THAT(planner.Acceptance(kFirst, MakeSequence(18), 5), SizeIs(3));
  EXPECT_THAT(planner.Acceptance(kFirst, MakeSequence(19), 5), SizeIs(2));
  EXPECT_THAT(planner.Acceptance(kFirst, MakeSequence(20), 5), IsEmpty());
}

TEST_F(DraftModelPlannerTest, LearnsAndComesBackToTry) {
  DraftModelPlanner planner(WorkerEpoch(1), Options());
  Sequence sequence = MakeSequence(9);
  const double expected = planner.Acceptance(kFirst, sequence, 1)[0];
  for (int i = 0; i < 30; ++i) {
    Plan(planner, kFirst, sequence, 2);
    planner.Observe(kFirst, 2, 0);
    sequence.Append(5);
  }
  const double low = planner.Acceptance(kFirst, sequence, 1)[0];
  EXPECT_LT(low, 0.25);
  for (int i = 0; i < 1000; ++i) Plan(planner, kFirst, sequence, 0);
  EXPECT_NEAR(planner.Acceptance(kFirst, sequence, 1)[0], expected, 0.05);
  for (int i = 0; i < 30; ++i) {
    Plan(planner, kFirst, sequence, 2);
    planner.Observe(kFirst, 2, 2);
    for (const TokenId token : {5, 6, 7}) sequence.Append(token);
  }
  EXPECT_THAT(planner.Acceptance(kFirst, sequence, 2), Each(testing::Gt(0.9)));
}

// KV that broke is made again from the tokens, but not for ever.
TEST_F(DraftModelPlannerTest, BrokenKvIsComputedAgain) {
  DraftModelPlanner planner(WorkerEpoch(1), Options());
  Sequence sequence = MakeSequence(40);
  const absl::Status broken = absl::InternalError("NaN");
  for (uint32_t i = 1; i <= DraftModelPlanner::kMostFailures; ++i) {
    EXPECT_THAT(planner.Acceptance(kFirst, sequence, 2), SizeIs(2));
    const StepPlan reading = Plan(planner, kFirst, sequence, 2);
    EXPECT_EQ(reading.drafts.at(0).known.first_position, 0u);
    EXPECT_THAT(reading.draft_cleared, SizeIs(2));
    // Also while nobody guesses yet.
    if (i == 1) {
      EXPECT_EQ(planner.ObserveStep({broken}, {}), 1u);
      EXPECT_EQ(planner.pool().ledger().free, 16u);
      continue;
    }
    EXPECT_EQ(planner.ObserveStep({absl::OkStatus()}, {}), 0u);
    Plan(planner, kFirst, sequence, 2);
    EXPECT_EQ(planned_, 2u);
    EXPECT_EQ(planner.ObserveStep({broken}, {}), 1u);
    planner.Observe(kFirst, 1, 1);
    sequence.Append(5);
    sequence.Append(6);
    EXPECT_EQ(planner.pool().ledger().free, 16u);
  }
  EXPECT_THAT(planner.Acceptance(kFirst, sequence, 2), IsEmpty());
  EXPECT_THAT(Plan(planner, kFirst, sequence, 2).drafts, IsEmpty());
  EXPECT_EQ(planner.pool().ledger().free, 16u);
}

class SharedPromptTest : public DraftModelPlannerTest {
 protected:
  static constexpr uint32_t kChoices = 4;
  // One step for all choices; how many rows of KV it computes.
  StepPlan PlanAll(DraftModelPlanner& planner,
                   const std::vector<Sequence>& sequences) {
    StepPlan plan;
    planner.BeginStep(Duration::zero(), Duration::max());
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      PlanOne(planner, {JobId(1), i}, sequences[i], i, 2, &plan);
    }
    return plan;
  }
  static uint32_t Rows(const StepPlan& plan) {
    uint32_t rows = 0;
    for (const PlannedDraft& draft : plan.drafts) {
      rows += static_cast<uint32_t>(draft.known.tokens.size());
    }
    return rows;
  }
};

TEST_F(SharedPromptTest, IsComputedOnce) {
  DraftModelPlanner planner(WorkerEpoch(1), Options(32));
  std::vector<Sequence> sequences;
  for (uint32_t i = 0; i < kChoices; ++i) {
    sequences.push_back(MakeSequence(70));
    sequences.back().Append(500 + i);
  }
  // 32 tokens a step: the first choice reads, the others wait for it.
  for (int i = 0; i < 2; ++i) {
    const StepPlan plan = PlanAll(planner, sequences);
    EXPECT_THAT(plan.drafts, SizeIs(1));
    EXPECT_EQ(Rows(plan), 32u);
    EXPECT_THAT(plan.draft_copies, IsEmpty());
  }
  StepPlan plan = PlanAll(planner, sequences);
  EXPECT_THAT(plan.drafts, SizeIs(1));
  EXPECT_EQ(Rows(plan), 7u);
  sequences[0].Append(7);
  plan = PlanAll(planner, sequences);
  ASSERT_THAT(plan.drafts, SizeIs(4));
  ASSERT_THAT(plan.draft_copies, SizeIs(3));
  for (uint32_t i = 1; i < kChoices; ++i) {
    const PlannedSpan& first = plan.drafts[0].known;
    const PlannedSpan& known = plan.drafts[i].known;
    EXPECT_EQ(known.first_position, 70u);
    EXPECT_THAT(known.tokens, ElementsAre(500 + i));
    ASSERT_THAT(known.blocks, SizeIs(5));
    for (int block = 0; block < 4; ++block) {
      EXPECT_EQ(known.blocks[block], first.blocks[block]);
      EXPECT_EQ(planner.pool().Holds(known.blocks[block], BlockUse::kRunning),
                4u);
    }
    const BlockStartCopy& copy = plan.draft_copies[i - 1];
    EXPECT_EQ(copy.from, first.blocks[4]);
    EXPECT_EQ(copy.to, known.blocks[4]);
    EXPECT_EQ(copy.positions, 70u % kBlockTokens);
    EXPECT_EQ(planner.pool().Holds(copy.to, BlockUse::kRunning), 1u);
  }
  EXPECT_EQ(planner.pool().ledger().free, 32u - 4 - 4);
  planner.KeepOnly({{JobId(1), 2}});
  EXPECT_EQ(planner.pool().ledger().free, 32u - 5);
  planner.KeepOnly({});
  EXPECT_EQ(planner.pool().ledger().free, 32u);
}

TEST_F(SharedPromptTest, AnotherReadsOnWhenTheFirstIsGone) {
  DraftModelPlanner planner(WorkerEpoch(1), Options(32));
  std::vector<Sequence> sequences(2, MakeSequence(70));
  for (Sequence& sequence : sequences) sequence.Append(500);
  PlanAll(planner, sequences);
  PlanAll(planner, sequences);
  // The first does not want to guess in this step.
  StepPlan plan;
  planner.BeginStep(Duration::zero(), Duration::max());
  PlanOne(planner, {JobId(1), 0}, sequences[0], 0, 0, &plan);
  PlanOne(planner, {JobId(1), 1}, sequences[1], 1, 2, &plan);
  ASSERT_THAT(plan.drafts, SizeIs(1));
  EXPECT_EQ(plan.drafts[0].known.first_position, 64u);
  // Now the second has more than the first, which takes it over.
  sequences[1].Append(501);
  plan = PlanAll(planner, sequences);
  ASSERT_THAT(plan.drafts, SizeIs(2));
  EXPECT_EQ(plan.drafts[0].known.first_position, 70u);
  EXPECT_THAT(plan.drafts[0].known.tokens, ElementsAre(500));
  EXPECT_EQ(plan.drafts[1].known.first_position, 71u);
  EXPECT_THAT(plan.draft_copies, SizeIs(1));
  planner.KeepOnly({});
  EXPECT_EQ(planner.pool().ledger().free, 32u);
}

TEST_F(SharedPromptTest, OtherJobsShareNothing) {
  DraftModelPlanner planner(WorkerEpoch(1), Options(32));
  const Sequence sequence = MakeSequence(20);
  Plan(planner, kFirst, sequence, 2);
  const StepPlan plan = Plan(planner, kSecond, sequence, 2);
  EXPECT_EQ(plan.drafts.at(0).known.first_position, 0u);
}

TEST_F(SharedPromptTest, KvThatBrokeIsNotShared) {
  DraftModelPlanner planner(WorkerEpoch(1), Options(32));
  const std::vector<Sequence> sequences(2, MakeSequence(20));
  EXPECT_EQ(Rows(PlanAll(planner, sequences)), 20u);
  planner.ObserveStep({absl::InternalError("NaN")}, {});
  const StepPlan plan = PlanAll(planner, sequences);
  EXPECT_EQ(Rows(plan), 20u);
  EXPECT_THAT(plan.draft_copies, IsEmpty());
}

}  // namespace
}  // namespace baton::decode
