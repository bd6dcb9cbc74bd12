#include "decode_worker/peak_demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/tokens/token.h"

namespace baton::decode {
namespace {

TEST(PeakDemand, NothingNeedsNothing) { EXPECT_EQ(PeakDemand().Peak(), 0u); }

TEST(PeakDemand, OneChoiceGrowsToItsEnd) {
  PeakDemand demand;
  demand.AddChoice(20, 28, 0);
  EXPECT_EQ(demand.Peak(), 3u);
  PeakDemand longer;
  longer.AddChoice(20, 29, 0);
  EXPECT_EQ(longer.Peak(), 4u);
}

TEST(PeakDemand, WhoEndsEarlyMakesRoom) {
  PeakDemand demand;
  demand.AddChoice(100, 12, 0);  // 7 blocks, back when the other has 2
  demand.AddChoice(16, 112, 0);  // 8 blocks at the end
  EXPECT_EQ(demand.Peak(), 9u) << "less than 7 + 8";
}

TEST(PeakDemand, SharedBlocksCountOnce) {
  PeakDemand demand;
  demand.AddHeld(2, 10);
  for (int i = 0; i < 3; ++i) demand.AddChoice(40, 9, 2);
  EXPECT_EQ(demand.Peak(), 2u + 3 * 2u);
}

struct Use {
  uint32_t steps, blocks, rows;
  bool grows;
};

uint64_t BruteForce(const std::vector<Use>& uses) {
  uint64_t peak = 0;
  for (uint32_t step = 0; step <= 300; ++step) {
    uint64_t now = 0;
    for (const Use& use : uses) {
      if (use.steps < step) continue;
      now += use.grows ? BlocksFor(use.rows + step) - use.blocks : use.blocks;
    }
    peak = std::max(peak, now);
  }
  return peak;
}

TEST(PeakDemand, EqualsBruteForce) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    PeakDemand demand;
    std::vector<Use> uses(random() % 12);
    for (Use& use : uses) {
      use.grows = random() % 4 > 0;
      use.steps = random() % (1 + random() % 250);
      use.blocks = random() % 5;
      use.rows = use.blocks * kBlockTokens + random() % 100;
      if (use.grows) {
        demand.AddChoice(use.rows, use.steps, use.blocks);
      } else {
        demand.AddHeld(use.blocks, use.steps);
      }
    }
    ASSERT_EQ(demand.Peak(), BruteForce(uses)) << "round " << round;
  }
}

}  // namespace
}  // namespace baton::decode
