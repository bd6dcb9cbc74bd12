#include "kernels/cpu/peer_watch.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

constexpr int64_t kMicrosecond = 1000;
constexpr int64_t kMillisecond = 1'000'000;

// Ten items of 10 us each, fairly shared by two threads.
constexpr PeerWatch::Loop kFair = {10, 5, 50 * kMicrosecond, 2 * kMicrosecond};
constexpr PeerWatch::Loop kLateLoop = {10, 9, 90 * kMicrosecond,
                                       3 * kMillisecond};

TEST(PeerWatchTest, SharesWhilePeersAreInTime) {
  PeerWatch watch;
  for (int64_t now = 0; now < 1000 * kMillisecond; now += 52 * kMicrosecond) {
    ASSERT_TRUE(watch.SharesAt(now));
    watch.OnLoop(now, kFair);
  }
}

TEST(PeerWatchTest, OneLateBarrierIsEnoughAndPeersAreTriedAgain) {
  PeerWatch watch;
  ASSERT_TRUE(watch.SharesAt(0));
  watch.OnLoop(100, kLateLoop);
  EXPECT_FALSE(watch.SharesAt(101));
  EXPECT_FALSE(watch.SharesAt(99 + PeerWatch::kShortestAlone));
  EXPECT_TRUE(watch.SharesAt(100 + PeerWatch::kShortestAlone));
}

TEST(PeerWatchTest, IsAloneForLongerEveryTimeUpToABound) {
  PeerWatch watch;
  int64_t now = 0;
  int64_t expected = PeerWatch::kShortestAlone;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(watch.SharesAt(now));
    watch.OnLoop(now, kLateLoop);
    EXPECT_FALSE(watch.SharesAt(now + expected - 1)) << i;
    now += expected;
    expected = std::min(4 * expected, PeerWatch::kLongestAlone);
  }
}

TEST(PeerWatchTest, GoodTimesAreRewarded) {
  PeerWatch watch;
  int64_t now = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(watch.SharesAt(now));
    watch.OnLoop(now, kLateLoop);
    now += PeerWatch::kLongestAlone;
  }
  const int64_t end = now + 6 * PeerWatch::kLongestAlone;
  for (; now < end; now += 52 * kMicrosecond) {
    ASSERT_TRUE(watch.SharesAt(now));
    watch.OnLoop(now, kFair);
  }
  watch.OnLoop(now, kLateLoop);
  EXPECT_TRUE(watch.SharesAt(now + PeerWatch::kShortestAlone));
}

TEST(PeerWatchTest, ALongItemIsNotLate) {
  PeerWatch watch;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(watch.SharesAt(i));
    // Two items of 1 and 1.8 ms.
    watch.OnLoop(i, {2, 1, 1 * kMillisecond, 800 * kMicrosecond});
  }
}

TEST(PeerWatchTest, ManyShortWaitsAddUp) {
  PeerWatch watch;
  int64_t now = 0;
  int loops = 0;
  while (watch.SharesAt(now)) {
    now += 190 * kMicrosecond;
    // One of ten items takes 100 us longer than it should.
    watch.OnLoop(now, {10, 9, 90 * kMicrosecond, 100 * kMicrosecond});
    ASSERT_LT(++loops, 100);
  }
  EXPECT_GT(loops, 5);
}

TEST(PeerWatchTest, WaitsThatStillPayAreBorne) {
  PeerWatch watch;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(watch.SharesAt(i));
    watch.OnLoop(i, {10, 5, 50 * kMicrosecond, 40 * kMicrosecond});
  }
}

TEST(PeerWatchTest, APeerThatTakesEverythingIsNotLate) {
  PeerWatch watch;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(watch.SharesAt(i));
    watch.OnLoop(i, {4, 0, 0, 2 * kMillisecond});
  }
}

// Decode steps of 150 loops of 20 us, two threads; the peer's core belongs to
// a foreign process in every other slice of 4 ms.
TEST(PeerWatchTest, AForeignProcessCostsFewSteps) {
  constexpr int64_t kSlice = 4 * kMillisecond;
  constexpr int64_t kWork = 20 * kMicrosecond;
  PeerWatch watch;
  std::vector<int64_t> steps;
  int64_t now = 0;
  for (int step = 0; step < 2000; ++step) {
    const int64_t start = now;
    for (int loop = 0; loop < 150; ++loop) {
      const bool runs = now / kSlice % 2 == 0;
      const int64_t slice_end = (now / kSlice + 1) * kSlice;
      if (!watch.SharesAt(now)) {
        now += kWork;
      } else if (!runs) {  // never enters the loop
        now += kWork;
        watch.OnLoop(now, {10, 10, kWork, 0});
      } else if (slice_end - now > kWork / 2) {
        now += kWork / 2;
        watch.OnLoop(now, {10, 5, kWork / 2, 0});
      } else {  // is stopped inside an item
        const int64_t work = kWork * 9 / 10;
        const int64_t wait = slice_end + kSlice - now - work;
        now += work + wait;
        watch.OnLoop(now, {10, 9, work, wait});
      }
    }
    steps.push_back(now - start);
  }
  EXPECT_LT(now, 2000 * 150 * kWork * 10 / 9);
  std::sort(steps.begin(), steps.end());
  EXPECT_LE(steps[1980], 3 * steps[1000]);
}

}  // namespace
}  // namespace baton::kernels::cpu
