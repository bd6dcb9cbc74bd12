#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/strings.h"
#include "gtest/gtest.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/seed_runner.h"
#include "tests/simulation/shrinker.h"

namespace baton::simulation {
namespace {

// The ordinary run; BATON_SIMULATION_SEEDS asks for more or fewer.
constexpr uint64_t kSeeds = 3000;

uint64_t Seeds() {
  const char* wanted = std::getenv("BATON_SIMULATION_SEEDS");
  uint64_t seeds = kSeeds;
  if (wanted != nullptr && !absl::SimpleAtoi(wanted, &seeds)) {
    ADD_FAILURE() << "BATON_SIMULATION_SEEDS: want a number (got " << wanted
                  << ")";
  }
  return seeds;
}

TEST(SimulationTest, PropertiesHoldForEverySeed) {
  RunnerOptions options;
  options.progress = true;
  const uint64_t seeds = Seeds();
  const Campaign campaign = RunSeeds(1, seeds, options);
  std::printf("%s", campaign.ToString().c_str());
  if (campaign.failure.has_value()) {
    const auto& [seed, what] = *campaign.failure;
    const Shrunk shrunk = Shrink(seed, what);
    FAIL() << "seed " << seed << ": " << what
           << "\nreplay: " << ReplayCommand(seed)
           << "\nsmallest failing scenario: " << shrunk.what
           << "\nreplay: " << ReplayCommand(seed, shrunk.restriction);
  }
  if (seeds < kSeeds) return;
  // UNAVAILABLE is a good answer in a bad cluster, but no way of life.
  EXPECT_GT(campaign.CountOf("ended OK"), campaign.CountOf("requests") * 3 / 4);
  // A run in which nothing happens proves nothing.
  for (const char* what : {"worker crashes",
                           "worker freezes",
                           "worker drains",
                           "workers drained",
                           "router crashes",
                           "router freezes",
                           "router drains",
                           "sessions broken",
                           "sessions closed by routers",
                           "partitions",
                           "clock jumps",
                           "machines suspended",
                           "links broken",
                           "links stalled",
                           "links closed while being written",
                           "bits flipped",
                           "sends in error",
                           "data messages repeated",
                           "commands repeated",
                           "steps stalled",
                           "numeric failures",
                           "workers removed",
                           "workers broken",
                           "looks at breakers of broken workers, open",
                           "slow clients cut off",
                           "replays",
                           "attempts that continue an answer",
                           "events with quarantine",
                           "landings failed",
                           "landings refused",
                           "preemptions",
                           "returns by push",
                           "returns by recompute",
                           "pushes that failed",
                           "pushes refused",
                           "landings given up",
                           "waits for blocks given up",
                           "refused after a long wait",
                           "attempts within spare blocks",
                           "spans with guesses",
                           "guesses accepted",
                           "draft failures",
                           "draft blocks copied",
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
                           "ended INTERNAL",
                           "ended UNAVAILABLE",
                           "ended RESOURCE_EXHAUSTED",
                           "ended DEADLINE_EXCEEDED"}) {
    EXPECT_GT(campaign.CountOf(what), 0u) << "never seen: " << what;
  }
  // Every failpoint is reached, and processes die at all but the rarest.
  const std::vector<const Failpoint*>& points = FailpointSchedule::Points();
  EXPECT_GT(points.size(), 40u);
  size_t deadly = 0;
  for (const Failpoint* point : points) {
    EXPECT_GT(campaign.CountOf(point->name), 0u)
        << "never reached: " << point->name;
    if (campaign.CountOf(StrCat("died at ", point->name)) > 0) ++deadly;
    if (!point->can_fail) continue;
    EXPECT_GT(campaign.CountOf(StrCat("failed at ", point->name)), 0u)
        << "nothing ever failed at " << point->name;
  }
  EXPECT_GE(deadly, points.size() * 9 / 10);
}

TEST(SimulationTest, ASeedIsOneHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = Simulate(seed);
    const Outcome second = Simulate(seed);
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.counts, second.counts) << "seed " << seed;
  }
}

TEST(SimulationTest, SeedsDiffer) {
  EXPECT_NE(Simulate(1).digest, Simulate(2).digest);
}

TEST(SimulationTest, ProcessesAgree) {
  RunnerOptions alone;
  alone.processes = 1;
  RunnerOptions together;
  together.processes = 4;
  EXPECT_EQ(RunSeeds(1, 40, alone).digest, RunSeeds(1, 40, together).digest);
}

}  // namespace
}  // namespace baton::simulation
