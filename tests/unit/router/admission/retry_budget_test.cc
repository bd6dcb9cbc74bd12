#include "router/admission/retry_budget.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::seconds;

TEST(RetryBudgetTest, AShareOfRequestsAndAMinimumRate) {
  MonotonicTime now(seconds(9));
  RetryBudget budget({.share = 0.125, .per_second = 2, .burst = 5}, now);
  EXPECT_TRUE(budget.Take(5, now)) << "full at the start";
  EXPECT_FALSE(budget.Take(1, now));
  for (int i = 0; i < 8; ++i) budget.Accepted(now);
  EXPECT_TRUE(budget.Take(1, now));
  EXPECT_FALSE(budget.Take(1, now));
  now += seconds(1);
  EXPECT_FALSE(budget.Take(3, now)) << "all or nothing";
  EXPECT_TRUE(budget.Take(2, now));
  now += seconds(1000);
  EXPECT_FALSE(budget.Take(6, now)) << "no more than the burst";
  EXPECT_EQ(budget.left(), 5);
}

}  // namespace
}  // namespace baton::router
