#include "router/admission/deadline_set.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

MonotonicTime At(int ns) { return MonotonicTime(Duration(ns)); }

TEST(DeadlineSetTest, EarliestFirstAndOnlyWhenDue) {
  DeadlineSet<int> set;
  EXPECT_EQ(set.earliest(), kNever);
  EXPECT_FALSE(set.PopDue(kNever).has_value());
  set.Set(1, At(20));
  set.Set(2, At(10));
  EXPECT_EQ(set.earliest(), At(10));
  EXPECT_FALSE(set.PopDue(At(9)).has_value());
  EXPECT_EQ(set.PopDue(At(30)), 2);
  EXPECT_EQ(set.PopDue(At(30)), 1);
  EXPECT_EQ(set.earliest(), kNever);
}

TEST(DeadlineSetTest, SetReplacesAndRemoveIsIdempotent) {
  DeadlineSet<int> set;
  set.Set(1, At(10));
  set.Set(1, At(20));
  EXPECT_EQ(set.earliest(), At(20));
  set.Remove(1);
  set.Remove(1);
  EXPECT_EQ(set.earliest(), kNever);
}

}  // namespace
}  // namespace baton::router
