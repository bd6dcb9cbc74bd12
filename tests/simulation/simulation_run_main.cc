#include <cstdint>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "common/base/mutants.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/seed_runner.h"
#include "tests/simulation/shrinker.h"

namespace {

using baton::simulation::Campaign;
using baton::simulation::Restriction;

int RunOne(uint64_t seed, const Restriction& restriction, bool trace) {
  const baton::simulation::Outcome outcome =
      baton::simulation::Simulate(seed, restriction, trace);
  Campaign campaign;
  campaign.Add(outcome);
  std::printf("%s", campaign.ToString().c_str());
  if (!outcome.violation.has_value()) return 0;
  std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
              outcome.violation->c_str());
  return 1;
}

int RunMany(uint64_t first, uint64_t last,
            const baton::simulation::RunnerOptions& options) {
  const Campaign campaign = baton::simulation::RunSeeds(first, last, options);
  std::printf("%s", campaign.ToString().c_str());
  if (!campaign.failure.has_value()) return 0;
  const auto& [seed, what] = *campaign.failure;
  std::printf(
      "seed %llu FAILED: %s\nreplay: %s\n",
      static_cast<unsigned long long>(seed), what.c_str(),
      baton::simulation::ReplayCommand(seed, options.restriction).c_str());
  const auto shrunk = baton::simulation::Shrink(seed, what);
  std::printf(
      "smallest failing scenario (%u runs): %s\nreplay: %s\n", shrunk.runs,
      shrunk.what.c_str(),
      baton::simulation::ReplayCommand(seed, shrunk.restriction).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs simulated clusters; exit code 1 if a property breaks."};
  uint64_t seed = 0;
  std::string range, without, requests, mutant;
  bool trace = false;
  baton::simulation::RunnerOptions options;
  options.progress = true;
  Restriction& restriction = options.restriction;
  CLI::Option* one = app.add_option("--seed", seed, "one seed");
  CLI::Option* many = app.add_option(
      "--seeds", range, "a range A..B; a failure is made as small as it gets");
  app.add_flag("--trace", trace, "print what happens (with --seed)");
  app.add_option("--processes", options.processes, "default: one per core");
  app.add_option("--without", without,
                 "kinds of faults to leave out: " +
                     baton::simulation::FaultSet::All().ToString());
  app.add_option("--each", restriction.each,
                 "each kind of fault happens at most so often");
  CLI::Option* only = app.add_option(
      "--requests", requests, "only these requests, like 0,3,7, or none");
  app.add_option("--controls", restriction.controls,
                 "requests after the cluster is healed");
  app.add_option("--routers", restriction.routers, "at most");
  app.add_option("--prefill", restriction.prefill, "at most");
  app.add_option("--decode", restriction.decode, "at most");
  app.add_option("--salt", restriction.salt, "other delays");
  app.add_option("--mutant", mutant, "with this seeded bug in the cores");
  one->excludes(many);
  CLI11_PARSE(app, argc, argv);
  baton::chosen_mutant = mutant;
  const auto kinds = baton::simulation::FaultSet::Parse(without);
  if (!kinds.ok()) {
    std::fprintf(stderr, "--without: %s\n", kinds.status().ToString().c_str());
    return 2;
  }
  restriction.without = *kinds;
  if (only->count() > 0) {
    const auto numbers = baton::simulation::ParseNumbers(requests);
    if (!numbers.ok()) {
      std::fprintf(stderr, "--requests: %s\n",
                   numbers.status().ToString().c_str());
      return 2;
    }
    restriction.requests = *numbers;
  }
  if (one->count() > 0) return RunOne(seed, restriction, trace);
  unsigned long long first = 0, last = 0;
  if (std::sscanf(range.c_str(), "%llu..%llu", &first, &last) != 2 ||
      first > last) {
    std::fprintf(stderr, "--seeds: want A..B with A <= B (got %s)\n",
                 range.c_str());
    return 2;
  }
  return RunMany(first, last, options);
}
