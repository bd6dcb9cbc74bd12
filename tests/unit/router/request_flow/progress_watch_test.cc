#include "router/request_flow/progress_watch.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

MonotonicTime At(int s) { return MonotonicTime(std::chrono::seconds(s)); }

class ProgressWatchTest : public ::testing::Test {
 protected:
  bool StalledAt(int s) {
    watch_.Check(At(s));
    return watch_.stalled();
  }
  ProgressWatch watch_{std::chrono::seconds(10)};
};

TEST_F(ProgressWatchTest, NothingToDoIsNoStall) {
  EXPECT_EQ(watch_.due(), kNever);
  EXPECT_FALSE(StalledAt(1000));
}

TEST_F(ProgressWatchTest, WorkThatDoesNotMoveIsOneUntilItMoves) {
  watch_.SetBusy(true, At(100));
  watch_.SetBusy(true, At(105));
  EXPECT_EQ(watch_.due(), At(110));
  EXPECT_FALSE(StalledAt(109));
  EXPECT_TRUE(StalledAt(110));
  EXPECT_EQ(watch_.due(), kNever) << "it is known";
  watch_.Moved(At(120));
  EXPECT_FALSE(StalledAt(129));
  EXPECT_TRUE(StalledAt(130));
}

TEST_F(ProgressWatchTest, TheEndOfTheWorkEndsIt) {
  watch_.SetBusy(true, At(0));
  EXPECT_TRUE(StalledAt(10));
  watch_.SetBusy(false, At(11));
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(watch_.due(), kNever);
  watch_.SetBusy(true, At(50));
  EXPECT_EQ(watch_.due(), At(60)) << "time without work does not count";
}

}  // namespace
}  // namespace baton::router
