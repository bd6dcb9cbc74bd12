#include "router/routing/slow_start.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::seconds;

TEST(SlowStartTest, OneAndOneMorePerSuccessUntilTheTimeIsOver) {
  const MonotonicTime start(seconds(5));
  SlowStart slow;
  EXPECT_TRUE(slow.Allows(1000, start));
  slow.Begin(start, seconds(10));
  EXPECT_TRUE(slow.Allows(0, start));
  EXPECT_FALSE(slow.Allows(1, start));
  slow.Success();
  EXPECT_TRUE(slow.Allows(1, start));
  EXPECT_FALSE(slow.Allows(2, start + seconds(9)));
  EXPECT_TRUE(slow.Allows(2, start + seconds(10)));
}

}  // namespace
}  // namespace baton::router
