#include "router/admission/jitter.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::router {
namespace {

TEST(JitterTest, NeverEarlierAndAQuarterLaterAtMost) {
  Jitter jitter(1);
  std::set<Duration> seen;
  for (int i = 0; i < 1000; ++i) {
    const Duration d = jitter.Spread(std::chrono::seconds(4));
    EXPECT_GE(d, std::chrono::seconds(4));
    EXPECT_LE(d, std::chrono::seconds(5));
    seen.insert(d);
  }
  EXPECT_GT(seen.size(), 900u);
  EXPECT_EQ(jitter.Spread(Duration::zero()), Duration::zero());
  EXPECT_EQ(Jitter(7).Spread(std::chrono::seconds(1)),
            Jitter(7).Spread(std::chrono::seconds(1)));
}

}  // namespace
}  // namespace baton::router
