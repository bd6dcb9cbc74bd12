#include "router/front_door/request_log.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;

MonotonicTime At(int ms) { return MonotonicTime(milliseconds(100'000 + ms)); }

TEST(LineLimitTest, SoManyASecondAndTheRestIsCounted) {
  LineLimit limit(2);
  EXPECT_EQ(limit.Take(At(0)), 0u);
  EXPECT_EQ(limit.Take(At(10)), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.Take(At(20)).has_value());
  EXPECT_FALSE(limit.Take(At(999)).has_value());
  EXPECT_EQ(limit.Take(At(1000)), 6u);
  EXPECT_EQ(limit.Take(At(1001)), 0u);
  EXPECT_FALSE(limit.Take(At(1002)).has_value());
  EXPECT_EQ(limit.Take(At(9000)), 1u);
}

}  // namespace
}  // namespace baton::router
