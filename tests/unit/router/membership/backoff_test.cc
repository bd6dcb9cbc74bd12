#include "router/membership/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::router {
namespace {

using std::chrono::milliseconds;

TEST(BackoffTest, CeilingDoublesUpToTheLimit) {
  const Backoff::Options options{milliseconds(100), milliseconds(800)};
  Duration longest{};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff(options, seed);
    for (int ceiling : {100, 200, 400, 800, 800, 800}) {
      const Duration pause = backoff.Next();
      EXPECT_GE(pause, milliseconds(50));
      EXPECT_LE(pause, milliseconds(ceiling));
      longest = std::max(longest, pause);
    }
  }
  EXPECT_GT(longest, milliseconds(700));
}

TEST(BackoffTest, Jitters) {
  std::set<Duration> pauses;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Backoff backoff({}, seed);
    pauses.insert(backoff.Next());
  }
  EXPECT_GT(pauses.size(), 10u);
}

TEST(BackoffTest, ResetStartsOver) {
  Backoff backoff({milliseconds(10), milliseconds(10'000)}, 1);
  for (int i = 0; i < 12; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), milliseconds(10));
}

}  // namespace
}  // namespace baton::router
