#include "common/worker/chunk_planner.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace baton {
namespace {

TEST(ChunkPlanner, LongPromptRunsInWholeBudgets) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 100);
  std::vector<uint32_t> counts;
  while (!planner.empty()) {
    auto chunks = planner.Next(32);
    ASSERT_EQ(chunks.size(), 1u);
    counts.push_back(chunks[0].count);
    EXPECT_EQ(chunks[0].last, planner.empty());
  }
  EXPECT_EQ(counts, (std::vector<uint32_t>{32, 32, 32, 4}));
  EXPECT_EQ(planner.tokens(), 0u);
}

TEST(ChunkPlanner, ShortPromptsShareAStep) {
  ChunkPlanner planner;
  for (uint32_t i = 1; i <= 4; ++i) planner.Add(JobId(i), 10);
  auto chunks = planner.Next(64);
  ASSERT_EQ(chunks.size(), 4u);
  for (const auto& chunk : chunks) {
    EXPECT_EQ(chunk.count, 10u);
    EXPECT_TRUE(chunk.last);
  }
}

TEST(ChunkPlanner, LongPromptDelaysShortOneByOneStep) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 1000);
  ASSERT_EQ(planner.Next(64)[0].job, JobId(1));
  planner.Add(JobId(2), 8);
  auto chunks = planner.Next(64);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].job, JobId(2));
  EXPECT_TRUE(chunks[0].last);
}

TEST(ChunkPlanner, ManyLongPromptsDelayAShortOneByOneChunk) {
  ChunkPlanner planner;
  for (uint32_t i = 1; i <= 5; ++i) planner.Add(JobId(i), 1000);
  for (int step = 0; step < 7; ++step) planner.Next(64);
  planner.Add(JobId(9), 8);
  const auto chunks = planner.Next(64);
  EXPECT_EQ(chunks[0].job, JobId(9));
  EXPECT_TRUE(chunks[0].last);
}

TEST(ChunkPlanner, LongPromptsTakeTurns) {
  ChunkPlanner planner;
  for (uint32_t i = 1; i <= 3; ++i) planner.Add(JobId(i), 1000);
  std::vector<uint64_t> turns;
  for (int step = 0; step < 6; ++step) {
    const auto chunks = planner.Next(64);
    ASSERT_EQ(chunks.size(), 1u);
    turns.push_back(chunks[0].job.value());
  }
  EXPECT_EQ(turns, (std::vector<uint64_t>{1, 2, 3, 1, 2, 3}));
}

TEST(ChunkPlanner, ShortPromptsDoNotStarveALongOne) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 320);
  uint64_t next = 2;
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    ASSERT_LT(steps, 25);
    // As many short ones as fill every step.
    for (int i = 0; i < 8; ++i) planner.Add(JobId(next++), 8);
    for (const auto& chunk : planner.Next(64)) {
      done = done || (chunk.job == JobId(1) && chunk.last);
    }
  }
}

// Whose turn it is, the router has decided: many short prompts that came later
// take a fifth, and none of the long one's end.
TEST(ChunkPlanner, AFloodOfShortPromptsTakesAFifth) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 640);
  uint64_t next = 2;
  uint32_t passed = 0;
  for (bool done = false; !done;) {
    for (int i = 0; i < 8; ++i) planner.Add(JobId(next++), 8);
    for (const auto& chunk : planner.Next(64)) {
      done = done || (chunk.job == JobId(1) && chunk.last);
      if (!done && chunk.job != JobId(1)) passed += chunk.count;
    }
  }
  EXPECT_GE(passed, 640u / 5);
  EXPECT_LE(passed, 640u / 4 + 16 + 8);
}

TEST(ChunkPlanner, ShortPromptsThatCameFirstGoFirst) {
  ChunkPlanner planner;
  for (uint32_t i = 1; i <= 8; ++i) planner.Add(JobId(i), 16);
  planner.Add(JobId(9), 1000);
  EXPECT_EQ(planner.Next(64).size(), 4u);
  EXPECT_EQ(planner.Next(64).size(), 4u);
  EXPECT_EQ(planner.Next(64)[0].job, JobId(9));
}

TEST(ChunkPlanner, ALongPromptsEndIsAShortOne) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 70);
  planner.Add(JobId(2), 1000);
  planner.Next(64);
  const auto chunks = planner.Next(64);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].job, JobId(1));
  EXPECT_TRUE(chunks[0].last);
  EXPECT_EQ(chunks[1].job, JobId(2));
}

TEST(ChunkPlanner, LeftoverBudgetEndsOnABlockBorder) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 10);
  planner.Add(JobId(2), 100);
  auto chunks = planner.Next(64);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[1].count, 48u);
}

TEST(ChunkPlanner, BudgetBelowABlockStillAdvances) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 20);
  int steps = 0;
  while (!planner.empty() && steps < 100) {
    EXPECT_FALSE(planner.Next(3).empty());
    ++steps;
  }
  EXPECT_LE(steps, 20);
}

TEST(ChunkPlanner, RemovedPromptIsNotPlanned) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 20);
  planner.Add(JobId(2), 20);
  planner.Remove(JobId(1));
  planner.Remove(JobId(7));
  EXPECT_EQ(planner.tokens(), 20u);
  auto chunks = planner.Next(64);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].job, JobId(2));
}

TEST(ChunkPlanner, EveryTokenIsPlannedOnceInOrder) {
  std::mt19937 random(1);
  ChunkPlanner planner;
  std::map<JobId, std::pair<uint32_t, uint32_t>> expected;  // next, total
  uint64_t next_job = 1;
  for (int round = 0; round < 2000; ++round) {
    if (random() % 3 == 0) {
      const uint32_t tokens = 1 + random() % 200;
      planner.Add(JobId(next_job), tokens);
      expected[JobId(next_job++)] = {0, tokens};
    }
    const uint32_t budget = 1 + random() % 100;
    uint32_t sum = 0;
    for (const auto& chunk : planner.Next(budget)) {
      auto& [next, total] = expected.at(chunk.job);
      ASSERT_EQ(chunk.first, next);
      ASSERT_GE(chunk.count, 1u);
      next += chunk.count;
      sum += chunk.count;
      ASSERT_EQ(chunk.last, next == total);
      if (chunk.last) expected.erase(chunk.job);
    }
    ASSERT_LE(sum, budget);
    uint64_t left = 0;
    for (const auto& [job, p] : expected) left += p.second - p.first;
    ASSERT_EQ(planner.tokens(), left);
  }
}

TEST(ChunkPlanner, MayBeginAnywhere) {
  ChunkPlanner planner;
  planner.Add(JobId(1), 40, 20);
  EXPECT_EQ(planner.tokens(), 40u);
  EXPECT_EQ(planner.next_position(), 20u);
  const auto first = planner.Next(30);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].first, 20u);
  EXPECT_EQ(first[0].count, 28u) << "to the end of a block";
  EXPECT_FALSE(first[0].last);
  const auto second = planner.Next(30);
  EXPECT_EQ(second[0].first, 48u);
  EXPECT_EQ(second[0].count, 12u);
  EXPECT_TRUE(second[0].last);
  EXPECT_TRUE(planner.empty());
}

}  // namespace
}  // namespace baton
