// The simulator linked with the cores exactly as they ship: no seeded bug, no
// failpoint in them.
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/simulation/seed_runner.h"

namespace baton::simulation {
namespace {

TEST(ShippedCoresTest, PropertiesHold) {
  EXPECT_TRUE(FailpointSchedule::Points().empty());
  const Campaign campaign = RunSeeds(1, 200);
  std::printf("%s", campaign.ToString().c_str());
  EXPECT_FALSE(campaign.failure.has_value())
      << "seed " << campaign.failure->seed << ": " << campaign.failure->what;
  EXPECT_EQ(campaign.seeds_run, 200u);
}

}  // namespace
}  // namespace baton::simulation
