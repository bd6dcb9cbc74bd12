#ifndef BATON_TESTS_SIMULATION_SEED_RUNNER_H_
#define BATON_TESTS_SIMULATION_SEED_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/monotonic_time.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/restriction.h"

namespace baton::simulation {

struct Failure {
  uint64_t seed = 0;
  std::string what;
};

struct Campaign {
  uint64_t seeds_run = 0;
  uint64_t events = 0;
  Duration simulated{};
  uint64_t digest = 0;  // over all seeds: equal for equal runs
  std::map<std::string, uint64_t, std::less<>> counts;
  // The lowest seed of those that were run and violated a property or died.
  std::optional<Failure> failure;

  void Add(const Outcome& outcome);
  uint64_t CountOf(std::string_view what) const;
  std::string ToString() const;
};

struct RunnerOptions {
  Restriction restriction;
  // Processes; 0: one per core.
  unsigned processes = 0;
  // A line on standard error that follows the progress, if that is a terminal.
  bool progress = false;
};

// Runs seeds [first, last] in processes of their own, so that a crash of the
// cores is a failure like others; ends early after a failure.
Campaign RunSeeds(uint64_t first, uint64_t last,
                  const RunnerOptions& options = {});

// Runs one scenario in a process of its own: what failed, or nothing.
std::optional<std::string> RunApart(uint64_t seed,
                                    const Restriction& restriction);

// "build/release/tests/simulation_run --seed N --trace"
std::string ReplayCommand(uint64_t seed, const Restriction& restriction = {});

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SEED_RUNNER_H_
