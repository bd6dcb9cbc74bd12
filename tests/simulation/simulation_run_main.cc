#include <cstdint>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/simulation/cluster.h"
#include "tests/simulation/seed_runner.h"

namespace {

using baton::simulation::Campaign;

int RunOne(uint64_t seed, bool trace) {
  const baton::simulation::Outcome outcome =
      baton::simulation::Simulate(seed, trace);
  Campaign campaign;
  campaign.seeds_run = 1;
  campaign.events = outcome.events;
  campaign.simulated = outcome.simulated;
  campaign.digest = outcome.digest;
  campaign.counts = outcome.counts;
  std::printf("%s", campaign.ToString().c_str());
  if (!outcome.violation.has_value()) return 0;
  std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
              outcome.violation->c_str());
  return 1;
}

int RunMany(uint64_t first, uint64_t last) {
  const Campaign campaign = baton::simulation::RunSeeds(first, last);
  std::printf("%s", campaign.ToString().c_str());
  if (!campaign.failure.has_value()) return 0;
  const auto& [seed, what] = *campaign.failure;
  std::printf("seed %llu FAILED: %s\nreplay: %s\n",
              static_cast<unsigned long long>(seed), what.c_str(),
              baton::simulation::ReplayCommand(seed).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs simulated clusters; exit code 1 if a property breaks."};
  uint64_t seed = 0;
  std::string range;
  bool trace = false;
  CLI::Option* one = app.add_option("--seed", seed, "one seed");
  CLI::Option* many = app.add_option("--seeds", range, "a range A..B");
  app.add_flag("--trace", trace, "print what happens (with --seed)");
  one->excludes(many);
  app.require_option(1, 2);
  CLI11_PARSE(app, argc, argv);
  if (one->count() > 0) return RunOne(seed, trace);
  unsigned long long first = 0, last = 0;
  if (std::sscanf(range.c_str(), "%llu..%llu", &first, &last) != 2 ||
      first > last) {
    std::fprintf(stderr, "--seeds: want A..B with A <= B (got %s)\n",
                 range.c_str());
    return 2;
  }
  return RunMany(first, last);
}
