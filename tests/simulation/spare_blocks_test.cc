// Two decode workers, one of them with a small pool: a router that looks at
// spare blocks fills it less often.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/mutants.h"
#include "gtest/gtest.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/toy_model.h"

namespace baton::simulation {
namespace {

Scenario TwoTwins(uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  WorkloadShape& workload = scenario.workload;
  workload.requests = 40;
  workload.max_prompt_tokens = 100;
  workload.max_tokens = 150;
  workload.max_choices = 1;
  workload.stop_string_rate = 0;
  workload.arrivals = std::chrono::seconds(1);
  RouterShape router;
  router.options.vocabulary_size = kToyVocabulary;
  router.policy = "least_loaded";
  scenario.routers = {router};
  WorkerShape worker;
  worker.blocks = 200;
  worker.length_quantile = 0;
  worker.step_time = std::chrono::milliseconds(3);
  worker.max_preemptions = 5;
  scenario.prefill_workers = {worker, worker};
  scenario.decode_workers = {worker, worker};
  scenario.decode_workers[0].blocks = 24;
  scenario.fault_time = std::chrono::seconds(2);
  scenario.control_requests = 0;
  return scenario;
}

struct Seen {
  uint64_t preemptions = 0, refused = 0;
};

Seen RunAll(const char* mutant) {
  chosen_mutant = mutant;
  Seen seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = Cluster(TwoTwins(seed), false).Run();
    EXPECT_EQ(outcome.violation.value_or(""), "") << "seed " << seed;
    const auto count = [&](const char* what) {
      const auto it = outcome.counts.find(what);
      return it == outcome.counts.end() ? 0 : it->second;
    };
    seen.preemptions += count("preemptions");
    seen.refused += count("landings refused");
  }
  chosen_mutant = "";
  return seen;
}

TEST(SpareBlocksTest, ATwinWithRoomIsPreferred) {
  const Seen with = RunAll("");
  const Seen without = RunAll("spare_blocks_ignored");
  std::printf("preemptions %llu of %llu, refused %llu of %llu\n",
              static_cast<unsigned long long>(with.preemptions),
              static_cast<unsigned long long>(without.preemptions),
              static_cast<unsigned long long>(with.refused),
              static_cast<unsigned long long>(without.refused));
  EXPECT_GT(without.preemptions, 0u);
  EXPECT_LT(4 * with.preemptions, 3 * without.preemptions);
  EXPECT_LT(5 * with.refused, without.refused);
}

}  // namespace
}  // namespace baton::simulation
