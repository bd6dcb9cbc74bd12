#include "tests/simulation/shrinker.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "common/base/mutants.h"
#include "gtest/gtest.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/seed_runner.h"

namespace baton::simulation {
namespace {

// A seed that draws these kinds of faults, and more.
uint64_t SeedWith(std::initializer_list<FaultKind> kinds) {
  for (uint64_t seed = 1;; ++seed) {
    const Scenario scenario = Scenario::Draw(seed);
    const bool all =
        std::all_of(kinds.begin(), kinds.end(),
                    [&](FaultKind kind) { return scenario.faults.Has(kind); });
    if (all && scenario.faults.Kinds().size() > 6 &&
        scenario.routers.size() > 1) {
      return seed;
    }
  }
}

TEST(ShrinkerTest, KeepsWhatTheFailureNeedsAndNothingElse) {
  const uint64_t seed = SeedWith({FaultKind::kDuplicate, FaultKind::kCancel});
  Scenario full = Scenario::Draw(seed);
  // Fails if a duplicate meets requests 2 and 5 on a second router.
  auto run = [&](const Restriction& restriction) {
    Scenario scenario = full;
    scenario.Restrict(restriction);
    auto kept = [&](uint32_t i) {
      const auto& only = scenario.only_requests;
      return !only.has_value() ||
             std::find(only->begin(), only->end(), i) != only->end();
    };
    const bool fails = scenario.faults.Has(FaultKind::kDuplicate) && kept(2) &&
                       kept(5) && scenario.routers.size() >= 2;
    return fails ? std::optional<std::string>("broken") : std::nullopt;
  };
  const Shrunk shrunk = Shrink(seed, "broken", run);
  Scenario smallest = full;
  smallest.Restrict(shrunk.restriction);
  EXPECT_EQ(smallest.faults.ToString(), "duplicate");
  EXPECT_EQ(smallest.only_requests, (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(smallest.routers.size(), 2u);
  EXPECT_EQ(smallest.prefill_workers.size(), 1u);
  EXPECT_EQ(smallest.decode_workers.size(), 1u);
  EXPECT_EQ(smallest.control_requests, 0u);
  EXPECT_EQ(shrunk.restriction.each, 1u);
  EXPECT_LT(shrunk.runs, 1000u);
}

TEST(ShrinkerTest, AFailureThatComesAndGoesEndsTheSearch) {
  int calls = 0;
  const Shrunk shrunk = Shrink(1, "broken", [&](const Restriction&) {
    return ++calls % 3 == 0 ? std::optional<std::string>("broken")
                            : std::nullopt;
  });
  EXPECT_LE(shrunk.runs, 2000u);
}

TEST(ShrinkerTest, AMutantComesDownToAFewRequests) {
  chosen_mutant = "replay_shifts_prompt";
  const Campaign campaign = RunSeeds(1, 100);
  ASSERT_TRUE(campaign.failure.has_value());
  const auto& [seed, what] = *campaign.failure;
  const Shrunk shrunk = Shrink(seed, what);
  std::printf("%s\n%s\n", shrunk.what.c_str(),
              ReplayCommand(seed, shrunk.restriction).c_str());
  Scenario smallest = Scenario::Draw(seed);
  smallest.Restrict(shrunk.restriction);
  ASSERT_TRUE(smallest.only_requests.has_value());
  EXPECT_LE(smallest.only_requests->size() + smallest.control_requests, 6u);
  EXPECT_LE(smallest.faults.Kinds().size(), 2u);
  // It still fails, and it is the mutant's fault.
  EXPECT_EQ(RunApart(seed, shrunk.restriction), shrunk.what);
  chosen_mutant = "";
  EXPECT_EQ(RunApart(seed, shrunk.restriction), std::nullopt);
}

TEST(ShrinkerTest, ADeathOfTheProcessIsAFailureToo) {
  chosen_mutant = "duplicate_frame_accepted";  // trips a CHECK
  const Campaign campaign = RunSeeds(1, 200);
  ASSERT_TRUE(campaign.failure.has_value());
  EXPECT_EQ(campaign.failure->what.substr(0, 26), "the process died of signal");
  EXPECT_EQ(RunApart(campaign.failure->seed, Restriction{}),
            campaign.failure->what);
  chosen_mutant = "";
}

TEST(RestrictionTest, IsSaidInFlags) {
  Restriction restriction;
  EXPECT_EQ(restriction.ToFlags(), "");
  restriction.without.Add(FaultKind::kBitFlip);
  restriction.without.Add(FaultKind::kWorkerCrash);
  restriction.each = 2;
  restriction.requests = {3, 7};
  restriction.decode = 1;
  EXPECT_EQ(restriction.ToFlags(),
            " --without worker-crash,bit-flip --each 2 --requests 3,7 "
            "--decode 1");
  restriction.requests->clear();
  EXPECT_NE(restriction.ToFlags().find("--requests none"), std::string::npos);
  EXPECT_EQ(*ParseNumbers("3,7"), (std::vector<uint32_t>{3, 7}));
  EXPECT_TRUE(ParseNumbers("none")->empty());
  EXPECT_FALSE(ParseNumbers("3,x").ok());
  EXPECT_EQ(*FaultSet::Parse("worker-crash,bit-flip"), restriction.without);
  EXPECT_EQ(
      FaultSet::Parse("worker-crash,fire").status().message().substr(0, 21),
      "fault kind: got fire,");
}

TEST(RestrictionTest, TakesAwayAndChangesNothingElse) {
  const uint64_t seed = SeedWith({FaultKind::kWorkerCrash});
  const Scenario full = Scenario::Draw(seed);
  Restriction restriction;
  restriction.without.Add(FaultKind::kWorkerCrash);
  restriction.routers = 1;
  Scenario less = full;
  less.Restrict(restriction);
  EXPECT_EQ(less.faults.Kinds().size() + 1, full.faults.Kinds().size());
  EXPECT_EQ(less.routers.size(), 1u);
  EXPECT_EQ(less.decode_workers.size(), full.decode_workers.size());
  // A client is the same, whatever else is drawn for.
  const ClientPlan with = DrawClient(full.workload, full.faults, Random(5));
  const ClientPlan without = DrawClient(full.workload, {}, Random(5));
  EXPECT_EQ(with.params->prompt, without.params->prompt);
  EXPECT_EQ(with.arrival, without.arrival);
  EXPECT_EQ(with.choices, without.choices);
}

}  // namespace
}  // namespace baton::simulation
