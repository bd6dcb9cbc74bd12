#include "kernels/cpu/loop_history.h"

#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

constexpr int kThreads = 2;
constexpr int kItems = 4;
constexpr size_t kItemBytes = 256;  // what one FetchSome takes

// Enters a loop over `weights` whose items are one FetchSome each.
const ReadAhead* Enter(LoopHistory* history, const std::byte* weights,
                       int rows = 1, int items = kItems) {
  return history->Enter(weights, rows, items, [&](int item, ReadAhead* list) {
    return list->Add(weights + item * kItemBytes, kItemBytes);
  });
}

int Fetches(ReadAhead list) {
  int fetches = 0;
  while (list.FetchSome()) ++fetches;
  return fetches;
}

class LoopHistoryTest : public testing::Test {
 protected:
  std::vector<std::byte> a_ = std::vector<std::byte>(4096);
  std::vector<std::byte> b_ = std::vector<std::byte>(4096);
  LoopHistory history_{kThreads};
};

TEST_F(LoopHistoryTest, KnowsWhatFollowedLastTime) {
  EXPECT_EQ(Enter(&history_, a_.data()), nullptr);
  EXPECT_EQ(Enter(&history_, b_.data(), 1, 8), nullptr);
  const ReadAhead* after_a = Enter(&history_, a_.data());
  ASSERT_NE(after_a, nullptr);  // b, half of it for each thread
  EXPECT_EQ(Fetches(after_a[0]), 4);
  EXPECT_EQ(Fetches(after_a[1]), 4);
  const ReadAhead* after_b = Enter(&history_, b_.data(), 1, 8);
  ASSERT_NE(after_b, nullptr);
  EXPECT_EQ(Fetches(after_b[0]), 2);
}

TEST_F(LoopHistoryTest, ListsFollowTheRangesOfTheThreads) {
  std::vector<int> items;
  const auto reads = [&](int item, ReadAhead* list) {
    items.push_back(item);
    return list->Add(a_.data(), ReadAhead::kMaxBytes);  // full at once
  };
  history_.Enter(a_.data(), 1, 7, reads);
  EXPECT_EQ(items, (std::vector<int>{0, 4}));
}

TEST_F(LoopHistoryTest, ListsAreMadeAnewForOtherRowsOrItems) {
  for (const int rows : {1, 2}) {
    Enter(&history_, a_.data(), rows);
    Enter(&history_, b_.data(), rows, 4 * rows);
  }
  EXPECT_EQ(Fetches(Enter(&history_, a_.data(), 2)[0]), 4);
}

TEST_F(LoopHistoryTest, ManyRowsAreLeftOut) {
  Enter(&history_, a_.data());
  EXPECT_EQ(Enter(&history_, b_.data(), 512), nullptr);
  EXPECT_EQ(Enter(&history_, a_.data()), nullptr);
}

TEST_F(LoopHistoryTest, OneThreadNeedsNone) {
  LoopHistory history(1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Enter(&history, a_.data()), nullptr);
    EXPECT_EQ(Enter(&history, b_.data()), nullptr);
  }
}

TEST_F(LoopHistoryTest, ForgetsWhenWeightsComeAndGo) {
  Enter(&history_, a_.data());
  Enter(&history_, b_.data());
  std::vector<std::byte> others(10'000);
  for (const std::byte& other : others) Enter(&history_, &other);
  EXPECT_EQ(Enter(&history_, a_.data()), nullptr);
}

}  // namespace
}  // namespace baton::kernels::cpu
