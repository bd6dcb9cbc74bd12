#include "router/routing/concurrency_limit.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::seconds;

constexpr MonotonicTime kStart(seconds(100));

TEST(ConcurrencyLimitTest, NoneUntilSomethingIsLate) {
  ConcurrencyLimit limit;
  EXPECT_TRUE(limit.Allows(4096));
  for (int i = 0; i < 100; ++i) limit.InTime();
  EXPECT_EQ(limit.limit(), ConcurrencyLimit::kNone);
}

TEST(ConcurrencyLimitTest, HalvesOncePerGeneration) {
  ConcurrencyLimit limit;
  limit.Late(64, kStart, kStart + seconds(3));
  EXPECT_EQ(limit.limit(), 32u);
  EXPECT_TRUE(limit.Allows(31));
  EXPECT_FALSE(limit.Allows(32));
  limit.Late(63, kStart + seconds(2), kStart + seconds(4));
  EXPECT_EQ(limit.limit(), 32u) << "started when there were 64";
  limit.Late(32, kStart + seconds(4), kStart + seconds(7));
  EXPECT_EQ(limit.limit(), 16u);
}

TEST(ConcurrencyLimitTest, KeepsAFew) {
  ConcurrencyLimit limit;
  for (int i = 0; i < 9; ++i) {
    limit.Late(64, kStart + seconds(i), kStart + seconds(i));
  }
  EXPECT_EQ(limit.limit(), ConcurrencyLimit::kLeast);
}

TEST(ConcurrencyLimitTest, GrowsWithWhatIsInTime) {
  ConcurrencyLimit limit;
  limit.Late(20, kStart, kStart);
  ASSERT_EQ(limit.limit(), 10u);
  for (int i = 0; i < 4; ++i) limit.InTime();
  EXPECT_EQ(limit.limit(), 10u);
  limit.InTime();
  EXPECT_EQ(limit.limit(), 11u);
  for (int i = 0; i < 1000; ++i) limit.InTime();
  EXPECT_GT(limit.limit(), 50u);
}

}  // namespace
}  // namespace baton::router
