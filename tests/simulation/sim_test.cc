#include <cstdio>

#include "gtest/gtest.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/seed_runner.h"

namespace baton::simulation {
namespace {

TEST(SimulationTest, PropertiesHoldForEverySeed) {
  const Campaign campaign = RunSeeds(1, 1000);
  std::printf("%s", campaign.ToString().c_str());
  if (campaign.failure.has_value()) {
    FAIL() << "seed " << campaign.failure->first << ": "
           << campaign.failure->second
           << "\nreplay: " << ReplayCommand(campaign.failure->first);
  }
  // A run in which nothing happens proves nothing.
  for (const char* what : {"worker crashes",
                           "worker freezes",
                           "router crashes",
                           "sessions broken",
                           "sessions closed by routers",
                           "links broken",
                           "links stalled",
                           "links closed while being written",
                           "bits flipped",
                           "commands repeated",
                           "replays",
                           "events with quarantine",
                           "landings failed",
                           "landings refused",
                           "transfers failed",
                           "transfers acknowledged",
                           "served locally",
                           "cancels while queued",
                           "cancels while reserving",
                           "cancels while prefilling",
                           "cancels while transferring",
                           "cancels while decoding",
                           "cancels while prefilling locally",
                           "ended OK",
                           "ended CANCELLED",
                           "ended DEADLINE_EXCEEDED"}) {
    EXPECT_TRUE(campaign.counts.contains(what) && campaign.counts.at(what) > 0)
        << "never seen: " << what;
  }
}

TEST(SimulationTest, ASeedIsOneHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = Simulate(seed, false);
    const Outcome second = Simulate(seed, false);
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.counts, second.counts) << "seed " << seed;
  }
}

TEST(SimulationTest, SeedsDiffer) {
  EXPECT_NE(Simulate(1, false).digest, Simulate(2, false).digest);
}

}  // namespace
}  // namespace baton::simulation
