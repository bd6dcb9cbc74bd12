#include "kv_transfer/deadline_queue.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

MonotonicTime At(int ms) {
  return MonotonicTime(std::chrono::milliseconds(ms));
}

TEST(DeadlineQueueTest, GivesTheEarliestThenTheLowestId) {
  DeadlineQueue<int> queue;
  EXPECT_EQ(queue.Next(), kNever);
  queue.Set(3, At(20));
  queue.Set(2, At(10));
  queue.Set(1, At(20));
  EXPECT_EQ(queue.Next(), At(10));
  EXPECT_EQ(queue.PopDue(At(9)), std::nullopt);
  EXPECT_EQ(queue.PopDue(At(30)), 2);
  EXPECT_EQ(queue.PopDue(At(30)), 1);
  EXPECT_EQ(queue.PopDue(At(30)), 3);
  EXPECT_EQ(queue.PopDue(At(30)), std::nullopt);
}

TEST(DeadlineQueueTest, ReplacesAndClears) {
  DeadlineQueue<int> queue;
  queue.Set(1, At(10));
  queue.Set(1, At(30));
  EXPECT_EQ(queue.Next(), At(30));
  queue.Set(1, At(5));
  EXPECT_EQ(queue.Next(), At(5));
  queue.Set(1, kNever);
  EXPECT_EQ(queue.Next(), kNever);
  queue.Set(2, At(1));
  queue.Clear(2);
  queue.Clear(2);
  EXPECT_EQ(queue.PopDue(At(100)), std::nullopt);
}

}  // namespace
}  // namespace baton::transfer
