#include "router/admission/admission_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

MonotonicTime At(Duration d) { return MonotonicTime(d); }

class AdmissionQueueTest : public ::testing::Test {
 protected:
  explicit AdmissionQueueTest(AdmissionLimits limits = {}) : queue_(limits) {}

  void Limit(AdmissionLimits limits) {
    std::destroy_at(&queue_);
    std::construct_at(&queue_, limits);
  }
  TenantId Tenant(const std::string& name) {
    const auto it = tenants_.find(name);
    return it != tenants_.end() ? it->second
                                : tenants_[name] = queue_.Enter(name);
  }
  AdmissionQueue::Item Item(uint64_t id, const std::string& tenant = "",
                            int priority = 1, uint64_t tokens = 10) {
    return {.id = WorkId(id),
            .priority = priority,
            .arrival = id,
            .tokens = tokens,
            .since = now_,
            .tenant = Tenant(tenant)};
  }
  absl::Status Admit(const AdmissionQueue::Item& item) {
    return queue_.Admit(item, now_, &displaced_);
  }
  std::vector<uint64_t> Displaced() {
    std::vector<uint64_t> ids;
    for (const auto& item : std::exchange(displaced_, {})) {
      ids.push_back(item.id.value());
    }
    return ids;
  }
  // What a look through the queue sees, with nothing taken.
  std::vector<uint64_t> Order() const {
    std::vector<uint64_t> ids;
    AdmissionQueue::Pass pass(&queue_);
    while (const AdmissionQueue::Item* item = pass.Next()) {
      ids.push_back(item->id.value());
    }
    return ids;
  }
  uint64_t TakeHead() {
    AdmissionQueue::Pass pass(&queue_);
    const WorkId id = pass.Next()->id;
    queue_.Take(id, now_);
    return id.value();
  }
  std::vector<uint64_t> TakeAll() {
    std::vector<uint64_t> ids;
    while (queue_.size() > 0) ids.push_back(TakeHead());
    return ids;
  }
  // The queue drains at `rate` tokens per second for `time`.
  void Drain(uint64_t rate, int time) {
    for (int i = 0; i < time * 10; ++i) {
      now_ += milliseconds(100);
      queue_.Served(rate / 10, now_);
    }
  }

  MonotonicTime now_ = At(seconds(100));
  AdmissionQueue queue_;
  std::map<std::string, TenantId> tenants_;
  std::vector<AdmissionQueue::Item> displaced_;
};

TEST_F(AdmissionQueueTest, PriorityThenArrival) {
  ASSERT_TRUE(Admit(Item(1, "", 1)).ok());
  ASSERT_TRUE(Admit(Item(2, "", 2)).ok());
  ASSERT_TRUE(Admit(Item(3, "", 0)).ok());
  ASSERT_TRUE(Admit(Item(4, "", 1)).ok());
  EXPECT_EQ(Order(), (std::vector<uint64_t>{3, 1, 4, 2}));
  EXPECT_EQ(queue_.tokens(), 40u);
  EXPECT_EQ(queue_.size(1), 2u);
}

TEST_F(AdmissionQueueTest, EarliestDeadlineFirstWithinTenantAndBand) {
  const int deadlines[] = {30, 10, 20};
  for (uint64_t i = 0; i < 3; ++i) {
    AdmissionQueue::Item item = Item(i + 1);
    item.deadline = now_ + seconds(deadlines[i]);
    ASSERT_TRUE(Admit(item).ok());
  }
  AdmissionQueue::Item high = Item(4, "", 0);
  high.deadline = now_ + seconds(99);
  ASSERT_TRUE(Admit(high).ok());
  EXPECT_EQ(Order(), (std::vector<uint64_t>{4, 2, 3, 1}));
}

TEST_F(AdmissionQueueTest, ReturnedWorkKeepsItsPlace) {
  Limit({.max_requests = 2});
  ASSERT_TRUE(Admit(Item(5)).ok());
  ASSERT_TRUE(Admit(Item(6)).ok());
  AdmissionQueue::Item back = Item(7);
  back.arrival = 4;
  queue_.Return(back, now_);
  EXPECT_EQ(Order(), (std::vector<uint64_t>{7, 5, 6}));
}

// CASES 2.45: a flood of one tenant does not delay another.
TEST_F(AdmissionQueueTest, TenantsTakeTurnsByTheirService) {
  for (uint64_t i = 1; i <= 6; ++i) ASSERT_TRUE(Admit(Item(i, "flood")).ok());
  EXPECT_EQ(TakeHead(), 1u);
  ASSERT_TRUE(Admit(Item(11, "small", 1, 5)).ok());
  ASSERT_TRUE(Admit(Item(12, "small", 1, 5)).ok());
  ASSERT_TRUE(Admit(Item(13, "small", 1, 5)).ok());
  // Lifted to the flood's 10 when it came; then 5 tokens against 10.
  const std::vector<uint64_t> order = TakeAll();
  EXPECT_EQ(order, (std::vector<uint64_t>{2, 11, 12, 3, 13, 4, 5, 6}));
}

// CASES 2.45: a huge prompt of one tenant is charged to it alone.
TEST_F(AdmissionQueueTest, ShortRequestsPassAHugeOneOfAnotherTenant) {
  ASSERT_TRUE(Admit(Item(1, "huge", 1, 640'000)).ok());
  ASSERT_TRUE(Admit(Item(2, "huge", 1, 640'000)).ok());
  for (uint64_t i = 3; i < 10; ++i) {
    ASSERT_TRUE(Admit(Item(i, "short", 1, 100)).ok());
  }
  EXPECT_EQ(TakeAll(), (std::vector<uint64_t>{1, 3, 4, 5, 6, 7, 8, 9, 2}));
}

TEST_F(AdmissionQueueTest, OutputIsServiceToo) {
  ASSERT_TRUE(Admit(Item(1, "writer")).ok());
  ASSERT_TRUE(Admit(Item(2, "reader")).ok());
  EXPECT_EQ(Order(), (std::vector<uint64_t>{1, 2}));
  queue_.Charge(Tenant("writer"), 1);
  EXPECT_EQ(Order(), (std::vector<uint64_t>{2, 1}));
  queue_.Refund(Tenant("writer"), 1);
  EXPECT_EQ(Order(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(AdmissionQueueTest, NobodySavesUpServiceAndDebtsStay) {
  ASSERT_TRUE(Admit(Item(1, "a", 1, 1000)).ok());
  ASSERT_TRUE(Admit(Item(2, "a", 1, 1000)).ok());
  ASSERT_TRUE(Admit(Item(3, "a", 1, 1000)).ok());
  TakeHead();
  TakeHead();
  ASSERT_TRUE(Admit(Item(4, "new", 1, 1000)).ok());
  EXPECT_EQ(queue_.tenants().service(Tenant("new")), 2000u)
      << "as much as `a`, who waits, not 0";
  queue_.Charge(Tenant("a"), 1);
  EXPECT_EQ(TakeAll(), (std::vector<uint64_t>{4, 3}));
  ASSERT_TRUE(Admit(Item(5, "later", 1, 10)).ok());
  EXPECT_EQ(queue_.tenants().service(Tenant("later")), 2001u)
      << "as much as whoever was served last had before";
}

TEST_F(AdmissionQueueTest, HighPriorityIsNoWayAroundFairness) {
  Limit({.priority_allowance = 100});
  for (uint64_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(Admit(Item(i, "flood", 0)).ok());
  }
  ASSERT_TRUE(Admit(Item(50, "quiet", 1)).ok());
  std::vector<uint64_t> order = TakeAll();
  const auto at = std::find(order.begin(), order.end(), 50u) - order.begin();
  EXPECT_EQ(at, 10) << "after 100 tokens of privilege";
}

TEST_F(AdmissionQueueTest, RefusesByCountWithRetryInfo) {
  Limit({.max_requests = 1});
  ASSERT_TRUE(Admit(Item(1)).ok());
  now_ += seconds(3);
  const absl::Status status = Admit(Item(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "queue: full (1 requests, allowed 1)");
  EXPECT_GE(RetryDelay(status), Duration(seconds(3)));
  EXPECT_LE(RetryDelay(status), Duration(milliseconds(3750)));
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(AdmissionQueueTest, UntilSomethingWasSeenThePredictionCounts) {
  Limit({.max_tokens = 1000});
  ASSERT_TRUE(Admit(Item(1, "", 1, 1000)).ok());
  queue_.Expect(200);
  const absl::Status status = Admit(Item(2));
  EXPECT_GE(RetryDelay(status), Duration(seconds(5)));
  EXPECT_LE(RetryDelay(status), Duration(milliseconds(6250)));
}

TEST_F(AdmissionQueueTest, RefusesByTokensButNotTheOnlyRequest) {
  Limit({.max_tokens = 100});
  ASSERT_TRUE(Admit(Item(1, "", 1, 500)).ok());
  EXPECT_EQ(Admit(Item(2, "", 1, 1)).message(),
            "queue: full (500 prompt tokens and 1 more, allowed 100)");
  EXPECT_TRUE(queue_.Remove(WorkId(1), now_));
  EXPECT_FALSE(queue_.Remove(WorkId(1), now_));
  EXPECT_TRUE(Admit(Item(2, "", 1, 1)).ok());
  EXPECT_EQ(queue_.tokens(), 1u);
}

TEST_F(AdmissionQueueTest, RefusesByBytes) {
  Limit({.max_bytes = 100});
  AdmissionQueue::Item item = Item(1);
  item.bytes = 80;
  ASSERT_TRUE(Admit(item).ok());
  item = Item(2);
  item.bytes = 21;
  EXPECT_EQ(Admit(item).message(),
            "queue: full (80 bytes and 21 more, allowed 100)");
  EXPECT_EQ(queue_.bytes(), 80u);
}

TEST_F(AdmissionQueueTest, AFullQueueIsSharedBetweenTenants) {
  Limit({.max_requests = 4});
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Admit(Item(i, "flood")).ok());
  EXPECT_FALSE(Admit(Item(5, "flood")).ok());
  ASSERT_TRUE(Admit(Item(6, "quiet")).ok());
  EXPECT_EQ(Displaced(), (std::vector<uint64_t>{4})) << "the last in line";
  ASSERT_TRUE(Admit(Item(7, "quiet")).ok());
  EXPECT_EQ(Displaced(), (std::vector<uint64_t>{3}));
  EXPECT_FALSE(Admit(Item(8, "quiet")).ok()) << "both have half of it";
  EXPECT_FALSE(Admit(Item(9, "flood")).ok());
  EXPECT_TRUE(Displaced().empty());
  EXPECT_EQ(queue_.size(), 4u);
}

TEST_F(AdmissionQueueTest, DisplacesAsManyAsItNeedsOrNone) {
  Limit({.max_tokens = 100});
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(Admit(Item(i, "flood")).ok());
  ASSERT_TRUE(Admit(Item(11, "quiet", 1, 35)).ok());
  EXPECT_EQ(Displaced(), (std::vector<uint64_t>{10, 9, 8, 7}));
  EXPECT_FALSE(Admit(Item(12, "third", 1, 70)).ok());
  EXPECT_TRUE(Displaced().empty());
}

TEST_F(AdmissionQueueTest, HigherBandsDisplaceLowerOnesOfTheirTenant) {
  Limit({.max_requests = 2});
  ASSERT_TRUE(Admit(Item(1, "", 1)).ok());
  ASSERT_TRUE(Admit(Item(2, "", 2)).ok());
  EXPECT_FALSE(Admit(Item(3, "", 2)).ok());
  ASSERT_TRUE(Admit(Item(4, "", 0)).ok());
  EXPECT_EQ(Displaced(), (std::vector<uint64_t>{2}));
  EXPECT_EQ(queue_.DisplacedError(now_).message(),
            "queue: full, and others have had less of it");
}

TEST_F(AdmissionQueueTest, WhatHasRunIsNotDisplaced) {
  Limit({.max_requests = 1});
  AdmissionQueue::Item replay = Item(1, "flood");
  replay.may_expire = false;
  queue_.Return(replay, now_);
  EXPECT_FALSE(Admit(Item(2, "quiet")).ok());
}

TEST_F(AdmissionQueueTest, OldItemsExpireUnlessTheyRanBefore) {
  Limit({.max_age = seconds(10)});
  const MonotonicTime start = now_;
  ASSERT_TRUE(Admit(Item(1)).ok());
  AdmissionQueue::Item replay = Item(2);
  replay.may_expire = false;
  queue_.Return(replay, now_);
  EXPECT_EQ(queue_.next_expiry(), start + seconds(10));
  EXPECT_FALSE(queue_.PopExpired(start + milliseconds(9'999)).has_value());
  EXPECT_EQ(queue_.PopExpired(start + seconds(10))->id, WorkId(1));
  EXPECT_FALSE(queue_.PopExpired(start + seconds(99)).has_value());
  EXPECT_EQ(Order(), (std::vector<uint64_t>{2}));
  const absl::Status status = queue_.ExpiredError(start + seconds(10));
  EXPECT_EQ(status.message(), "queue: no worker had room within 10 s");
  EXPECT_TRUE(RetryDelay(status).has_value());
}

TEST_F(AdmissionQueueTest, RetryInfoIsTheTimeToDrain) {
  ASSERT_TRUE(Admit(Item(1, "", 1, 1000)).ok());
  Drain(100, 6);
  for (int i = 0; i < 50; ++i) {
    const double seconds_left = Seconds(queue_.RetryDelay(now_));
    EXPECT_GE(seconds_left, 9.9);
    EXPECT_LE(seconds_left, 13.0);
  }
}

// CASES 2.15: overload is refused at once instead of waited for.
TEST_F(AdmissionQueueTest, LikelyLateIsRefusedWithNumbers) {
  ASSERT_TRUE(Admit(Item(1, "a", 1, 1000)).ok());
  AdmissionQueue::Item late = Item(2, "a", 1, 10);
  late.deadline = now_ + seconds(16);
  EXPECT_TRUE(queue_.CheckDeadline(late, {}, now_).ok()) << "nothing measured";
  Drain(100, 6);
  AdmissionQueue::Item first = Item(3, "a");
  first.deadline = now_ + seconds(9);
  EXPECT_TRUE(queue_.CheckDeadline(first, {}, now_).ok()) << "it will be first";
  ASSERT_TRUE(queue_.Remove(WorkId(1), now_));
  AdmissionQueue::Item early = Item(4, "a", 1, 1000);
  early.deadline = now_ + seconds(8);
  ASSERT_TRUE(Admit(early).ok());
  const absl::Status status = queue_.CheckDeadline(first, {}, now_);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "queue: the deadline might pass (10 s in it and 0 s after it are "
            "expected, 9 s left)");
  first.deadline = now_ + milliseconds(15'500);
  EXPECT_TRUE(queue_.CheckDeadline(first, milliseconds(400), now_).ok());
  EXPECT_FALSE(queue_.CheckDeadline(first, milliseconds(600), now_).ok());
  first.deadline = now_ + seconds(9);
  EXPECT_TRUE(RetryDelay(status).has_value());
  AdmissionQueue::Item other = Item(5, "b");
  other.deadline = first.deadline;
  EXPECT_TRUE(queue_.CheckDeadline(other, {}, now_).ok())
      << "another tenant has its own turn";
}

TEST_F(AdmissionQueueTest, RandomUseKeepsItsBooks) {
  Limit({.max_requests = 30, .max_tokens = 2000, .max_bytes = 9000});
  std::mt19937_64 random(7);
  std::map<uint64_t, AdmissionQueue::Item> model;
  for (uint64_t id = 1; id < 20'000; ++id) {
    now_ += milliseconds(random() % 50);
    AdmissionQueue::Item item =
        Item(id, StrCat("t", random() % 5), static_cast<int>(random() % 3),
             1 + random() % 200);
    item.bytes = random() % 500;
    item.deadline = now_ + milliseconds(random() % 5000);
    item.may_expire = random() % 4 != 0;
    switch (random() % 4) {
      case 0:
      case 1:
        if (Admit(item).ok()) model[id] = item;
        for (uint64_t gone : Displaced()) EXPECT_EQ(model.erase(gone), 1u);
        break;
      case 2:
        if (!model.empty()) model.erase(TakeHead());
        break;
      default: {
        const uint64_t gone = id - random() % 40;
        EXPECT_EQ(queue_.Remove(WorkId(gone), now_), model.erase(gone) == 1);
        queue_.Charge(item.tenant, random() % 100);
      }
    }
    uint64_t tokens = 0, bytes = 0;
    for (const auto& [key, value] : model) {
      tokens += value.tokens;
      bytes += value.bytes;
    }
    ASSERT_EQ(queue_.size(), model.size());
    ASSERT_EQ(queue_.size(0) + queue_.size(1) + queue_.size(2), model.size());
    ASSERT_EQ(queue_.tokens(), tokens);
    ASSERT_EQ(queue_.bytes(), bytes);
    if (id % 64 == 0) {
      std::vector<uint64_t> seen = Order();
      std::sort(seen.begin(), seen.end());
      std::vector<uint64_t> want;
      for (const auto& [key, value] : model) want.push_back(key);
      ASSERT_EQ(seen, want) << "a pass sees each once";
    }
  }
}

}  // namespace
}  // namespace baton::router
