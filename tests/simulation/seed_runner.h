#ifndef BATON_TESTS_SIMULATION_SEED_RUNNER_H_
#define BATON_TESTS_SIMULATION_SEED_RUNNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/monotonic_time.h"

namespace baton::simulation {

struct Campaign {
  uint64_t seeds_run = 0;
  uint64_t events = 0;
  Duration simulated{};
  uint64_t digest = 0;  // over all seeds: equal for equal runs
  std::map<std::string, uint64_t, std::less<>> counts;
  // The lowest seed that violated a property, and how.
  std::optional<std::pair<uint64_t, std::string>> failure;

  std::string ToString() const;
};

// Runs seeds [first, last] on all cores; ends early after a failure.
Campaign RunSeeds(uint64_t first, uint64_t last);

// "build/release/tests/simulation_run --seed N --trace"
std::string ReplayCommand(uint64_t seed);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SEED_RUNNER_H_
