#ifndef BATON_TESTS_SIMULATION_SHRINKER_H_
#define BATON_TESTS_SIMULATION_SHRINKER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/restriction.h"

namespace baton::simulation {

struct Shrunk {
  Restriction restriction;
  std::string what;  // how the smallest scenario fails
  uint32_t runs = 0;
};

// Takes away from a failing scenario what it does not need: first kinds of
// faults and how often they happen, then requests, then processes, until
// nothing more can go. Any failure counts, not only the first one.
// `run` says how a restricted scenario fails, if it does.
Shrunk Shrink(
    uint64_t seed, std::string what,
    const std::function<std::optional<std::string>(const Restriction&)>& run);

// The same with scenarios run in processes of their own.
Shrunk Shrink(uint64_t seed, std::string what);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SHRINKER_H_
