// The random histories of a decode scheduler (tests/unit/decode_worker), linked
// with cores compiled with BATON_MUTANTS: they find seeded bugs of its pool.
#include "common/base/mutants.h"
#include "gtest/gtest.h"
#include "tests/unit/decode_worker/random_decode.h"

namespace baton::decode {
namespace {

constexpr uint32_t kSeeds = 12;

// An exception is as good as a CHECK.
void RunAll() noexcept {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) RandomDecode(seed).Run(1500);
}

class RandomDecodeMutantTest : public testing::TestWithParam<const char*> {};

TEST_P(RandomDecodeMutantTest, IsFound) {
  EXPECT_DEATH(
      {
        GTEST_FLAG_SET(break_on_failure, true);
        chosen_mutant = GetParam();
        RunAll();
      },
      "");
}

INSTANTIATE_TEST_SUITE_P(
    Pool, RandomDecodeMutantTest,
    testing::Values("preempted_keeps_blocks", "recompute_misses_a_row",
                    "preemption_unbounded", "draft_block_not_cleared",
                    "draft_kv_not_rolled_back", "fetched_tail_not_recomputed",
                    "no_quarantine", "ledger_not_restored"),
    [](const auto& mutant) { return mutant.param; });

TEST(RandomDecodeNoMutantTest, WithoutOneTheSameHistoriesPass) {
  chosen_mutant = "";
  RunAll();
}

}  // namespace
}  // namespace baton::decode
