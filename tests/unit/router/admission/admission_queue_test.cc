#include "router/admission/admission_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/rpc/status.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

MonotonicTime At(Duration d) { return MonotonicTime(d); }

AdmissionQueue::Item Item(uint64_t id, int priority = 1, uint64_t tokens = 10,
                          Duration since = seconds(0)) {
  return {WorkId(id), priority, id, tokens, At(since)};
}

std::vector<uint64_t> Order(const AdmissionQueue& queue) {
  std::vector<uint64_t> ids;
  const AdmissionQueue::Item* item = queue.Next(std::nullopt);
  while (item != nullptr) {
    ids.push_back(item->id.value());
    item = queue.Next(AdmissionQueue::PositionOf(*item));
  }
  return ids;
}

TEST(AdmissionQueueTest, FifoWithinPriority) {
  AdmissionQueue queue({});
  ASSERT_TRUE(queue.Admit(Item(1, 1), At({})).ok());
  ASSERT_TRUE(queue.Admit(Item(2, 2), At({})).ok());
  ASSERT_TRUE(queue.Admit(Item(3, 0), At({})).ok());
  ASSERT_TRUE(queue.Admit(Item(4, 1), At({})).ok());
  EXPECT_EQ(Order(queue), (std::vector<uint64_t>{3, 1, 4, 2}));
  EXPECT_EQ(queue.tokens(), 40u);
}

TEST(AdmissionQueueTest, ReturnedWorkKeepsItsPlace) {
  AdmissionQueue queue({.max_requests = 2});
  ASSERT_TRUE(queue.Admit(Item(5), At({})).ok());
  ASSERT_TRUE(queue.Admit(Item(6), At({})).ok());
  queue.Return({WorkId(7), 1, /*arrival=*/4, 10, At({})});
  EXPECT_EQ(Order(queue), (std::vector<uint64_t>{7, 5, 6}));
}

TEST(AdmissionQueueTest, RefusesByCountWithRetryInfo) {
  AdmissionQueue queue({.max_requests = 1});
  ASSERT_TRUE(queue.Admit(Item(1), At({})).ok());
  const absl::Status status = queue.Admit(Item(2), At(seconds(3)));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "queue: full (1 requests, allowed 1)");
  EXPECT_EQ(RetryDelay(status), Duration(seconds(3)));
  EXPECT_EQ(queue.size(), 1u);
}

TEST(AdmissionQueueTest, RefusesByTokensButNotTheOnlyRequest) {
  AdmissionQueue queue({.max_tokens = 100});
  ASSERT_TRUE(queue.Admit(Item(1, 1, 500), At({})).ok());
  EXPECT_EQ(queue.Admit(Item(2, 1, 1), At({})).message(),
            "queue: full (500 prompt tokens and 1 more, allowed 100)");
  EXPECT_TRUE(queue.Remove(WorkId(1)));
  EXPECT_FALSE(queue.Remove(WorkId(1)));
  EXPECT_TRUE(queue.Admit(Item(2, 1, 1), At({})).ok());
  EXPECT_EQ(queue.tokens(), 1u);
}

TEST(AdmissionQueueTest, OldItemsExpireUnlessTheyRanBefore) {
  AdmissionQueue queue({.max_age = seconds(10)});
  ASSERT_TRUE(queue.Admit(Item(1, 1, 10, seconds(1)), At(seconds(1))).ok());
  AdmissionQueue::Item replay = Item(2);
  replay.may_expire = false;
  queue.Return(replay);
  EXPECT_EQ(queue.next_expiry(), At(seconds(11)));
  EXPECT_FALSE(queue.PopExpired(At(milliseconds(10'999))).has_value());
  EXPECT_EQ(queue.PopExpired(At(seconds(11)))->id, WorkId(1));
  EXPECT_FALSE(queue.PopExpired(At(seconds(99))).has_value());
  EXPECT_EQ(Order(queue), (std::vector<uint64_t>{2}));
  const absl::Status status = queue.ExpiredError(At(seconds(11)));
  EXPECT_EQ(status.message(), "queue: no worker had room within 10 s");
  EXPECT_TRUE(RetryDelay(status).has_value());
}

}  // namespace
}  // namespace baton::router
