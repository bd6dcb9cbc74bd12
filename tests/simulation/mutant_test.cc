// Linked with cores compiled with BATON_MUTANTS: each seeded bug must be found
// within a number of seeds, and without one the same seeds pass.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "common/base/check.h"
#include "common/base/mutants.h"
#include "gtest/gtest.h"
#include "tests/simulation/cluster.h"

namespace baton::simulation {
namespace {

struct Mutant {
  const char* name;
  uint64_t within;  // seeds
};

constexpr Mutant kMutants[] = {
    {"free_while_sending", 50},
    {"no_quarantine", 50},
    {"no_generation_check", 50},
    {"same_generation", 50},
    {"double_acknowledge", 50},
    {"late_write_after_close", 100},
    {"verified_too_early", 50},
    {"wrong_ordinal", 50},
    {"no_checksum", 200},
    {"duplicate_token_index", 200},
    {"replay_shifts_prompt", 50},
    {"deadline_ignored", 100},
    {"credit_leak", 200},
    {"lost_release", 200},
};

// The first seed in [1, last] that finds the mutant; 0 if none does. Runs in a
// process of its own, for a mutant may well trip a CHECK of the cores, which
// counts as found.
uint64_t FindMutant(const Mutant& mutant) {
  int pipe_ends[2];
  BATON_CHECK(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  BATON_CHECK(child >= 0);
  if (child == 0) {
    chosen_mutant = mutant.name;
    for (uint64_t seed = 1; seed <= mutant.within; ++seed) {
      BATON_CHECK(write(pipe_ends[1], &seed, sizeof(seed)) == sizeof(seed));
      const Outcome outcome = Simulate(seed, false);
      if (!outcome.violation.has_value()) continue;
      std::printf("%s: seed %llu: %s\n", mutant.name,
                  static_cast<unsigned long long>(seed),
                  outcome.violation->c_str());
      std::fflush(stdout);
      _exit(1);
    }
    _exit(0);
  }
  close(pipe_ends[1]);
  uint64_t seed = 0;
  while (read(pipe_ends[0], &seed, sizeof(seed)) == sizeof(seed)) {
  }
  close(pipe_ends[0]);
  int status = 0;
  BATON_CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : seed;
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsFound) {
  const uint64_t seed = FindMutant(GetParam());
  EXPECT_GT(seed, 0u) << GetParam().name << " survived " << GetParam().within
                      << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Cores, MutantTest, ::testing::ValuesIn(kMutants),
                         [](const auto& mutant) { return mutant.param.name; });

TEST(NoMutantTest, TheSameSeedsPass) {
  uint64_t last = 0;
  for (const Mutant& mutant : kMutants) last = std::max(last, mutant.within);
  EXPECT_EQ(FindMutant({"", last}), 0u);
}

}  // namespace
}  // namespace baton::simulation
