#include <gtest/gtest.h>

#include <random>

#include "tests/unit/decode_worker/random_decode.h"

namespace baton::decode {
namespace {

class RandomDecodeTest : public testing::TestWithParam<int> {};

TEST_P(RandomDecodeTest, LedgerBalancesAndEverythingComesBack) {
  RandomDecode history(static_cast<uint32_t>(GetParam()));
  history.Run();
  if (HasFatalFailure()) return;
  const DecodeCounters& counters = history.counters();
  if (GetParam() % 5 == 0) {
    EXPECT_GT(counters.preemptions, 0u);
  }
  EXPECT_EQ(counters.speculation.drafted > 0, history.guesses());
  EXPECT_EQ(counters.speculation.accepted > 0, history.guesses());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDecodeTest, testing::Range(1, 43));

// What a history must have in it, over all seeds, to prove anything.
TEST(RandomDecodeCoverage, PreemptsAndGuessesTogether) {
  uint64_t both = 0, unforced = 0, landed = 0, pushed = 0, refused = 0,
           failed = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomDecode history(seed);
    history.Run();
    const DecodeCounters& counters = history.counters();
    both += counters.preemptions > 0 && counters.speculation.accepted > 0;
    unforced += seed % 5 > 0 ? counters.preemptions : 0;
    landed += counters.landed;
    pushed += counters.pushed_returns;
    refused += counters.refused_fetches;
    failed += counters.failed_fetches;
  }
  EXPECT_GT(both, 2u);
  EXPECT_GT(unforced, 20u);
  EXPECT_GT(landed, 100u);
  EXPECT_GT(pushed, 20u);
  EXPECT_GT(refused, 10u);
  EXPECT_GT(failed, 10u);
}

TEST(DecodeRelease, ThousandReleasesReturnThePool) {
  std::mt19937 random(7);
  SchedulerHarness h;
  h.OpenSession(1);
  for (uint64_t attempt = 1; attempt <= 1000; ++attempt) {
    const auto spec =
        toy::MakeSpec(1 + random() % 300, 1 + random() % 50, 1 + random() % 2);
    const bool local = random() % 2 == 0;
    if (local) {
      h.Serve(1, attempt, spec);
    } else {
      h.Reserve(1, attempt, spec);
      if (!h.landings.empty() && random() % 3 > 0) {
        h.Verified(h.OnlyLanding(),
                   std::vector<TokenId>(spec.choices_size(), TokenId{9}));
      }
    }
    const int phase = static_cast<int>(random() % 20);
    for (int i = 0; i < phase && h.step.has_value(); ++i) h.FinishStep();
    h.Release(1, attempt);
    if (h.step.has_value()) h.FinishStep();
    while (!h.landings.empty()) h.CloseLanding(h.OnlyLanding());
    ASSERT_FALSE(h.step.has_value()) << attempt;
    ASSERT_TRUE(h.AllFree()) << attempt;
    ASSERT_TRUE(h.scheduler.idle()) << attempt;
  }
}

}  // namespace
}  // namespace baton::decode
