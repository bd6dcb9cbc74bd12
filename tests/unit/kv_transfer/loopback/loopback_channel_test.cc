#include "kv_transfer/loopback/loopback_channel.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

class LoopbackChannelTest : public ::testing::Test {
 protected:
  LoopbackChannel channel{std::make_shared<LoopbackBell>(),
                          std::make_shared<LoopbackBell>()};
  absl::Status why = absl::CancelledError("why");
};

TEST_F(LoopbackChannelTest, CarriesParcelsAndReceipts) {
  ASSERT_TRUE(channel.Put(0, {SendId(1), "a", {}}));
  ASSERT_TRUE(channel.Put(0, {SendId(2), "b", {}}));
  EXPECT_FALSE(channel.Take(0).has_value());
  EXPECT_EQ(channel.Take(1)->header, "a");
  EXPECT_TRUE(channel.TakeReceipts(0).empty());
  channel.Return(1, SendId(1));
  const auto receipts = channel.TakeReceipts(0);
  ASSERT_EQ(receipts.size(), 1u);
  EXPECT_EQ(receipts[0].send, SendId(1));
  EXPECT_TRUE(receipts[0].status.ok());
  EXPECT_EQ(channel.Take(1)->header, "b");
}

TEST_F(LoopbackChannelTest, IsClosedForTheSenderOnlyWhenNobodyCopies) {
  ASSERT_TRUE(channel.Put(0, {SendId(1), "a", {}}));
  ASSERT_TRUE(channel.Put(0, {SendId(2), "b", {}}));
  ASSERT_TRUE(channel.Take(1).has_value());
  channel.Close(why);
  EXPECT_FALSE(channel.Put(0, {SendId(3), "c", {}}));
  EXPECT_FALSE(channel.Take(1).has_value());
  EXPECT_EQ(channel.TakeReceipts(0).at(0).status, why);
  EXPECT_FALSE(channel.TakeClosed(0).has_value()) << "1 is being copied";
  EXPECT_EQ(channel.TakeClosed(1), why);
  channel.Return(1, SendId(1));
  EXPECT_FALSE(channel.TakeClosed(0).has_value()) << "a receipt is left";
  EXPECT_TRUE(channel.TakeReceipts(0).at(0).status.ok());
  EXPECT_EQ(channel.TakeClosed(0), why);
  EXPECT_FALSE(channel.TakeClosed(0).has_value()) << "told once";
}

TEST_F(LoopbackChannelTest, ABellThatRangIsHeardOnce) {
  LoopbackBell bell;
  bell.Ring();
  bell.Wait(std::chrono::hours(1));
  bell.Wait(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace baton::transfer
