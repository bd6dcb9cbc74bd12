#include "tests/simulation/seed_runner.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "tests/simulation/cluster.h"

namespace baton::simulation {

std::string Campaign::ToString() const {
  char hours[32];
  std::snprintf(hours, sizeof(hours), "%.1f", Seconds(simulated) / 3600);
  std::string text = StrCat(seeds_run, " seeds, ", hours, " simulated hours, ",
                            events, " events, digest ", digest, "\n");
  for (const auto& [what, times] : counts) {
    StrAppend(&text, "  ", times, " ", what, "\n");
  }
  return text;
}

Campaign RunSeeds(uint64_t first, uint64_t last) {
  Campaign campaign;
  std::mutex mutex;
  std::atomic<uint64_t> next = first;
  std::atomic<bool> failed = false;
  auto work = [&] {
    while (!failed) {
      const uint64_t seed = next++;
      if (seed > last) return;
      const Outcome outcome = Simulate(seed, false);
      std::lock_guard lock(mutex);
      ++campaign.seeds_run;
      campaign.events += outcome.events;
      campaign.simulated += outcome.simulated;
      campaign.digest ^= outcome.digest;
      for (const auto& [what, times] : outcome.counts) {
        campaign.counts[what] += times;
      }
      if (outcome.violation.has_value()) {
        failed = true;
        if (!campaign.failure.has_value() || seed < campaign.failure->first) {
          campaign.failure = {seed, *outcome.violation};
        }
      }
    }
  };
  std::vector<std::thread> threads;
  const unsigned cores =
      std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  for (unsigned i = 0; i < cores; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return campaign;
}

std::string ReplayCommand(uint64_t seed) {
  return StrCat("build/release/tests/simulation_run --seed ", seed, " --trace");
}

}  // namespace baton::simulation
