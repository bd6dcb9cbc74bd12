// Linked with cores compiled with BATON_MUTANTS: each seeded bug must be found
// within a number of seeds, and without one the same seeds pass.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "common/base/mutants.h"
#include "gtest/gtest.h"
#include "tests/simulation/seed_runner.h"

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
    {"deadline_ignored", 400},
    {"credit_leak", 200},
    {"lost_release", 200},
    {"stale_epoch_accepted", 50},
    {"ledger_not_restored", 50},
    {"replay_shifts_penalties", 200},
    {"session_loss_ignored", 500},
    {"worker_deadline_is_final", 800},
    {"deadline_ignored_while_queued", 400},
    {"duplicate_frame_accepted", 200},
    {"replay_crosses_fingerprints", 400},
    {"preempted_keeps_blocks", 50},
    {"recompute_misses_a_row", 50},
    {"preemption_unbounded", 200},
    {"standstill_without_end", 1000},
    {"overtaken_for_ever", 1000},
    {"fetched_tail_not_recomputed", 400},
    {"fetch_without_deadline", 400},
    {"pushed_unheld", 50},
    {"another_prefix_found", 100},
    {"spare_blocks_forget_growth", 50},
    {"draft_not_compared", 50},
    {"draft_block_not_cleared", 50},
    {"draft_kv_not_rolled_back", 100},
    {"failed_draft_kv_kept", 400},
};

// The first seed found in [1, last] that finds the mutant. It may well trip a
// CHECK of the cores, which counts as found.
std::optional<Failure> FindMutant(const Mutant& mutant) {
  chosen_mutant = mutant.name;
  const Campaign campaign = RunSeeds(1, mutant.within);
  chosen_mutant = "";
  if (campaign.failure.has_value()) {
    std::printf("%s: seed %llu: %s\n", mutant.name,
                static_cast<unsigned long long>(campaign.failure->seed),
                campaign.failure->what.c_str());
  }
  return campaign.failure;
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsFound) {
  EXPECT_TRUE(FindMutant(GetParam()).has_value())
      << GetParam().name << " survived " << GetParam().within << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Cores, MutantTest, ::testing::ValuesIn(kMutants),
                         [](const auto& mutant) { return mutant.param.name; });

TEST(NoMutantTest, TheSameSeedsPass) {
  uint64_t last = 0;
  for (const Mutant& mutant : kMutants) last = std::max(last, mutant.within);
  EXPECT_FALSE(FindMutant({"", last}).has_value());
}

}  // namespace
}  // namespace baton::simulation
