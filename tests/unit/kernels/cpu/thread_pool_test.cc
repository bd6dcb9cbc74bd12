#include "kernels/cpu/thread_pool.h"

#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

TEST(ThreadPoolTest, RunsEveryItemOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int items : {0, 1, 2, 3, 100}) {
      std::vector<std::atomic<int>> runs(items);
      pool.Run(items, [&](int item, int) { ++runs[item]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, SeesWhatTheLastLoopWrote) {
  ThreadPool pool(4);
  std::vector<int> values(64);
  for (int round = 0; round < 3000; ++round) {
    pool.Run(64, [&](int item, int) { ++values[63 - item]; });
  }
  EXPECT_EQ(values, std::vector<int>(64, 3000));
}

TEST(ThreadPoolTest, ThreadNumbersAreNotSharedAtOneTime) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  std::atomic<int> busy[kThreads] = {};
  std::atomic<bool> clash = false;
  for (int round = 0; round < 200; ++round) {
    pool.Run(50, [&](int, int thread) {
      if (busy[thread].fetch_add(1) != 0) clash = true;
      busy[thread].fetch_sub(1);
    });
  }
  EXPECT_FALSE(clash);
}

TEST(ThreadPoolTest, UsesItsThreads) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<int> seen;
  std::atomic<int> arrived = 0;
  // Both items wait for each other, so two threads must take them.
  pool.Run(2, [&](int, int thread) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    seen.insert(thread);
  });
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
}

TEST(ThreadPoolTest, RangesCoverTheItemsAndTheCallerHasOne) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const int items : {1, 2, 3, 5, 100}) {
      EXPECT_EQ(ThreadPool::FirstItem(items, threads, 0), 0);
      EXPECT_GE(ThreadPool::FirstItem(items, threads, 1), 1);
      EXPECT_EQ(ThreadPool::FirstItem(items, threads, threads), items);
      for (int thread = 0; thread < threads; ++thread) {
        const int size = ThreadPool::FirstItem(items, threads, thread + 1) -
                         ThreadPool::FirstItem(items, threads, thread);
        EXPECT_GE(size, items / threads);
        EXPECT_LE(size, (items + threads - 1) / threads);
      }
    }
  }
}

TEST(ThreadPoolTest, ItemsGoInOrderOfTheRangeThenToWhoeverIsFree) {
  constexpr int kItems = 40;
  constexpr int kPeerFirst = 20;
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  std::atomic<int> done = 0;
  std::vector<int> own;
  // The peer stays in its first item until all others are done.
  pool.Run(kItems, [&](int item, int thread) {
    if (item == 0 || item == kPeerFirst) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    }
    if (thread == 0) own.push_back(item);
    if (item == kPeerFirst) {
      while (done < kItems - 1) std::this_thread::yield();
    }
    ++done;
  });
  std::vector<int> expected(kPeerFirst);
  std::iota(expected.begin(), expected.end(), 0);
  for (int item = kItems - 1; item > kPeerFirst; --item) {
    expected.push_back(item);
  }
  EXPECT_EQ(own, expected);
}

TEST(ThreadPoolTest, WakesThreadsThatWentToSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> arrived = 0;
    pool.Run(2, [&](int, int) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
  }
}

std::atomic<int64_t> clock_reads = 0;
std::atomic<int64_t> clock_skips = 0;

int64_t FakeNanoseconds() { return ++clock_reads + clock_skips; }

TEST(ThreadPoolTest, LeavesALatePeerOutForAWhile) {
  ThreadPool pool(2, FakeNanoseconds);
  std::atomic<int> arrived = 0;
  // The peer's item ends 50 ms after the caller has begun to wait for it.
  pool.Run(2, [&](int, int thread) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    if (thread == 0) return;
    while (clock_reads < 2) std::this_thread::yield();
    clock_skips += 50'000'000;
  });
  for (int round = 0; round < 100; ++round) {
    pool.Run(100, [&](int, int thread) { EXPECT_EQ(thread, 0); });
  }
  clock_skips += PeerWatch::kLongestAlone;
  arrived = 0;
  pool.Run(2, [&](int, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPoolTest, ThreadsHaveTheDefaultFloatEnvironment) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // FTZ and DAZ would be inherited
  ThreadPool pool(2);
  _mm_setcsr(saved);
  std::atomic<int> arrived = 0;
  std::atomic<unsigned> worker_csr = ~0u;
  pool.Run(2, [&](int, int thread) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    if (thread == 1) worker_csr = _mm_getcsr();
  });
  EXPECT_EQ(worker_csr & 0xffc0, 0x1f80u);
}

}  // namespace
}  // namespace baton::kernels::cpu
