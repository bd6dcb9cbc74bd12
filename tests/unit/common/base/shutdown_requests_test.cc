#include "common/base/shutdown_requests.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace baton {
namespace {

TEST(ShutdownRequests, CountsOnceServing) {
  ShutdownRequests requests;
  requests.StartServing();
  EXPECT_FALSE(requests.WaitAbove(0, MonotonicNow()));
  requests.Add(SIGTERM);
  EXPECT_EQ(requests.count(), 1);
  EXPECT_TRUE(requests.WaitAbove(0, kNever));
  EXPECT_FALSE(requests.WaitAbove(1, MonotonicNow()));
}

TEST(ShutdownRequests, WakesTheWaiter) {
  ShutdownRequests requests;
  requests.StartServing();
  std::thread later([&] { requests.Add(SIGINT); });
  EXPECT_TRUE(requests.WaitAbove(0, kNever));
  later.join();
}

TEST(ShutdownRequestsDeathTest, BeforeServingOneEndsTheProcess) {
  ShutdownRequests requests;
  EXPECT_EXIT(requests.Add(SIGTERM), testing::ExitedWithCode(128 + SIGTERM),
              "");
}

}  // namespace
}  // namespace baton
