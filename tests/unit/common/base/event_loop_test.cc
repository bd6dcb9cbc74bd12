#include "common/base/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace baton {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;

// Runs everything posted so far.
void Flush(EventLoop* loop) {
  std::promise<void> done;
  loop->Post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(EventLoopTest, RunsTasksInOrderOnItsOwnThread) {
  EventLoop loop("test");
  std::vector<int> order;
  bool on_loop = false;
  for (int i = 0; i < 3; ++i) {
    loop.Post([&, i] {
      order.push_back(i);
      on_loop = loop.OnLoopThread();
    });
  }
  Flush(&loop);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(loop.OnLoopThread());
}

TEST(EventLoopTest, ManyThreadsMayPost) {
  EventLoop loop("test");
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) loop.Post([&] { ++count; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  Flush(&loop);
  EXPECT_EQ(count, 4000);
}

TEST(EventLoopTest, TimersRunByTimeAndNotEarly) {
  EventLoop loop("test");
  std::vector<int> order;
  std::promise<void> done;
  const MonotonicTime start = MonotonicNow();
  MonotonicTime ran;
  loop.PostAt(start + milliseconds(20), [&] {
    order.push_back(2);
    ran = MonotonicNow();
    done.set_value();
  });
  loop.PostAt(start + milliseconds(10), [&] { order.push_back(1); });
  loop.PostAt(start, [&] { order.push_back(0); });
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_GE(ran, start + milliseconds(20));
}

TEST(EventLoopTest, CancelledTimerDoesNotRun) {
  EventLoop loop("test");
  bool cancelled_ran = false;
  std::promise<void> done;
  const MonotonicTime soon = MonotonicNow() + milliseconds(10);
  const EventLoop::TimerId id =
      loop.PostAt(soon, [&] { cancelled_ran = true; });
  loop.PostAt(soon + milliseconds(1), [&] { done.set_value(); });
  EXPECT_NE(id, 0u);
  loop.CancelTimer(id);
  loop.CancelTimer(id);
  loop.CancelTimer(12345);
  done.get_future().wait();
  EXPECT_FALSE(cancelled_ran);
}

TEST(EventLoopTest, StopRunsWhatWasPostedAndDropsTimersAndLaterTasks) {
  EventLoop loop("test");
  int ran = 0;
  auto held = std::make_shared<int>(0);
  loop.PostAt(MonotonicNow() + hours(1), [held] {});
  for (int i = 0; i < 100; ++i) loop.Post([&] { ++ran; });
  loop.Stop();
  EXPECT_EQ(ran, 100);
  loop.Post([&, held] { ++ran; });
  loop.PostAt(MonotonicNow(), [&, held] { ++ran; });
  loop.Stop();
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(EventLoopTest, StopOnTheLoopReturnsAtOnce) {
  bool later_ran = false;
  {
    EventLoop loop("test");
    loop.Post([&] {
      loop.Stop();
      loop.Post([&] { later_ran = true; });
    });
  }
  EXPECT_FALSE(later_ran);
}

TEST(EventLoopTest, DestroysATaskBeforeTheNextOneRuns) {
  EventLoop loop("test");
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> watch = held;
  bool released = false;
  loop.Post([held = std::move(held)] {});
  loop.Post([&] { released = watch.expired(); });
  Flush(&loop);
  EXPECT_TRUE(released);
}

}  // namespace
}  // namespace baton
