#include "tests/simulation/shrinker.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/simulation/scenario.h"
#include "tests/simulation/seed_runner.h"

namespace baton::simulation {
namespace {

constexpr uint32_t kMostRuns = 2000;
constexpr uint64_t kSalts = 5;

using Run = std::function<std::optional<std::string>(const Restriction&)>;

class Shrinker {
 public:
  Shrinker(uint64_t seed, std::string what, const Run& run)
      : scenario_(Scenario::Draw(seed)), run_(run) {
    best_.what = std::move(what);
    requests_.resize(scenario_.workload.requests);
    std::iota(requests_.begin(), requests_.end(), 0);
  }

  Shrunk Result() {
    bool smaller = true;
    while (smaller && best_.runs < kMostRuns) {
      smaller = TakeFaults();
      smaller |= TakeRequests();
      smaller |= TakeProcesses();
    }
    return std::move(best_);
  }

 private:
  // Keeps the restriction if the scenario still fails with it, with some
  // delays.
  bool Try(Restriction restriction) {
    for (uint64_t i = 0; i < kSalts && best_.runs < kMostRuns; ++i) {
      ++best_.runs;
      const std::optional<std::string> what = run_(restriction);
      if (what.has_value()) {
        best_.restriction = std::move(restriction);
        best_.what = *what;
        return true;
      }
      restriction.salt = ++next_salt_;
    }
    return false;
  }

  bool TakeFaults() {
    bool smaller = false;
    FaultSet left = scenario_.faults;
    left.Remove(best_.restriction.without);
    for (FaultKind kind : left.Kinds()) {
      Restriction less = best_.restriction;
      less.without.Add(kind);
      smaller |= Try(less);
    }
    for (uint32_t each = 1; each < best_.restriction.each.value_or(10);
         ++each) {
      Restriction less = best_.restriction;
      less.each = each;
      if (Try(less)) return true;
    }
    return smaller;
  }

  // Without halves, quarters, ... of the requests that are left.
  bool TakeRequests() {
    bool smaller =
        TakeNumber(&Restriction::controls, scenario_.control_requests, 0);
    for (size_t part = (requests_.size() + 1) / 2;
         part > 0 && !requests_.empty();) {
      bool taken = false;
      for (size_t at = 0; at < requests_.size();) {
        std::vector<uint32_t> kept = requests_;
        kept.erase(kept.begin() + at,
                   kept.begin() + std::min(at + part, kept.size()));
        Restriction less = best_.restriction;
        less.requests = kept;
        if (Try(less)) {
          requests_ = std::move(kept);
          taken = smaller = true;
        } else {
          at += part;
        }
      }
      if (!taken || part > 1) part /= 2;
    }
    return smaller;
  }

  bool TakeProcesses() {
    bool smaller =
        TakeNumber(&Restriction::routers, scenario_.routers.size(), 1);
    smaller |=
        TakeNumber(&Restriction::prefill, scenario_.prefill_workers.size(), 1);
    smaller |=
        TakeNumber(&Restriction::decode, scenario_.decode_workers.size(), 1);
    return smaller;
  }

  // The smallest of `least`, `least` + 1, ... that still fails.
  bool TakeNumber(std::optional<uint32_t> Restriction::* number, size_t most,
                  uint32_t least) {
    const uint32_t now =
        (best_.restriction.*number).value_or(static_cast<uint32_t>(most));
    for (uint32_t fewer = least; fewer < now; ++fewer) {
      Restriction less = best_.restriction;
      less.*number = fewer;
      if (Try(less)) return true;
    }
    return false;
  }

  const Scenario scenario_;
  const Run& run_;
  Shrunk best_;
  uint64_t next_salt_ = 0;
  std::vector<uint32_t> requests_;  // that are left
};

}  // namespace

Shrunk Shrink(uint64_t seed, std::string what, const Run& run) {
  return Shrinker(seed, std::move(what), run).Result();
}

Shrunk Shrink(uint64_t seed, std::string what) {
  return Shrink(seed, std::move(what), [seed](const Restriction& restriction) {
    return RunApart(seed, restriction);
  });
}

}  // namespace baton::simulation
