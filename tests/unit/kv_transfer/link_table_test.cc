// Links are shared, bounded and fair.
#include "kv_transfer/link_table.h"

#include <gtest/gtest.h>

#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::seconds;

constexpr uint32_t kMany = 40;

// One core with several transfers of kMany blocks each to another.
class LinkTableTest : public ::testing::Test {
 protected:
  TransferOptions Options(uint64_t epoch) {
    TransferOptions options = TinyOptions(epoch);
    options.link_window_bytes = 8 * kTinyLayout.block_bytes();
    options.max_links = 4;
    return options;
  }

  TransferId Begin(Party* to, TinyMemory* target, uint64_t epoch) {
    const Ticket ticket =
        *to->core.OpenLanding(SpecFor(target, kMany * 16, epoch), now);
    return *holder.core.OpenTransfer(ticket, now + seconds(10), now);
  }

  void PushAll(TransferId transfer) {
    for (uint32_t i = 0; i < kMany; ++i) {
      ASSERT_TRUE(holder.core.PushBlock(transfer, i, source.block(i), 16).ok());
    }
    ASSERT_TRUE(holder.core.Seal(transfer, {}).ok());
  }

  void Poll() {
    holder.core.Poll(now, &holder.events);
    receiver.core.Poll(now, &receiver.events);
  }

  size_t FramesInFlight() const {
    size_t frames = 0;
    for (const Packet& packet : net.wire) frames += packet.type() == 2;
    return frames;
  }

  MonotonicTime now{std::chrono::hours(1)};
  FakeNetwork net;
  TinyMemory source{kMany, 1};
  Party holder{&net, "holder", Options(1)};
  Party receiver{&net, "receiver", Options(2)};
};

TEST_F(LinkTableTest, AWindowBoundsWhatIsInFlight) {
  TinyMemory target(kMany, 2);
  PushAll(Begin(&receiver, &target, 2));
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    Poll();
    most = std::max(most, FramesInFlight());
    if (!net.wire.empty()) net.Deliver(0);
  }
  EXPECT_EQ(most, 8u);
  EXPECT_EQ(holder.All<TransferAcked>().size(), 1u);
  EXPECT_TRUE(target == source);
}

TEST_F(LinkTableTest, TransfersTakeTurns) {
  TinyMemory targets[] = {TinyMemory(kMany, 2), TinyMemory(kMany, 3),
                          TinyMemory(kMany, 4)};
  std::vector<TransferId> transfers;
  for (TinyMemory& target : targets) {
    transfers.push_back(Begin(&receiver, &target, 2));
    PushAll(transfers.back());
  }
  EXPECT_EQ(holder.core.open_links(), 1u);
  std::vector<uint64_t> order;
  for (int i = 0; i < 2000; ++i) {
    Poll();
    if (net.wire.empty()) continue;
    if (net.wire[0].type() == 2) {
      order.push_back(DecodeKey(net.wire[0].header)->transfer.value());
    }
    net.Deliver(0);
  }
  ASSERT_EQ(order.size(), 3 * kMany);
  for (size_t i = 3; i < order.size(); ++i) {
    EXPECT_EQ(order[i], order[i - 3]) << i;
  }
  EXPECT_EQ(holder.All<TransferAcked>().size(), 3u);
}

TEST_F(LinkTableTest, AnIdleLinkMakesRoomForANewOne) {
  std::vector<std::unique_ptr<Party>> peers;
  std::vector<std::unique_ptr<TinyMemory>> targets;
  std::vector<TransferId> transfers;
  for (uint64_t i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<Party>(&net, "peer" + std::to_string(i),
                                            Options(10 + i)));
    targets.push_back(std::make_unique<TinyMemory>(kMany, i));
    transfers.push_back(Begin(peers[i].get(), targets[i].get(), 10 + i));
  }
  TinyMemory target(kMany, 2);
  const Ticket ticket =
      *receiver.core.OpenLanding(SpecFor(&target, kMany * 16, 2), now);
  const auto full = holder.core.OpenTransfer(ticket, now + seconds(1), now);
  EXPECT_TRUE(absl::IsResourceExhausted(full.status()));
  EXPECT_EQ(full.status().message(), "links: all 4 are in use");

  holder.core.Abort(transfers[2], now);
  for (int i = 0; i < 20; ++i) {
    Poll();
    peers[2]->core.Poll(now, &peers[2]->events);
    for (size_t p = 0; p < net.wire.size(); ++p) {
      if (net.wire[p].to == peers[2]->transport ||
          net.wire[p].from == peers[2]->transport) {
        net.Deliver(p);
        break;
      }
    }
  }
  EXPECT_EQ(holder.All<TransferClosed>().size(), 1u);
  EXPECT_TRUE(holder.core.OpenTransfer(ticket, now + seconds(1), now).ok());
  Poll();
  EXPECT_EQ(holder.core.open_links(), 4u);
}

TEST_F(LinkTableTest, TooManyPeersAreTurnedAway) {
  std::vector<LinkId> links;
  TinyMemory targets[] = {TinyMemory(kMany, 0), TinyMemory(kMany, 1),
                          TinyMemory(kMany, 2), TinyMemory(kMany, 3),
                          TinyMemory(kMany, 4)};
  std::vector<std::unique_ptr<Party>> peers;
  for (uint64_t i = 0; i < 5; ++i) {
    peers.push_back(std::make_unique<Party>(&net, "peer" + std::to_string(i),
                                            Options(10 + i)));
    const Ticket ticket =
        *receiver.core.OpenLanding(SpecFor(&targets[i], kMany * 16, 2), now);
    ASSERT_TRUE(
        peers[i]->core.OpenTransfer(ticket, now + seconds(5), now).ok());
    while (!net.wire.empty()) net.Deliver(0);
    Poll();
  }
  for (auto& peer : peers) peer->core.Poll(now, &peer->events);
  EXPECT_EQ(receiver.core.open_links(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(peers[i]->events.empty());
  EXPECT_TRUE(
      absl::IsUnavailable(peers[4]->All<TransferFailed>().at(0).status));
}

TEST_F(LinkTableTest, CloseLinksEndsEverything) {
  TinyMemory target(kMany, 2);
  PushAll(Begin(&receiver, &target, 2));
  Poll();
  net.Deliver(0);
  Poll();
  holder.core.CloseLinks();
  receiver.core.CloseLinks();
  Poll();
  EXPECT_EQ(holder.core.open_links(), 0u);
  EXPECT_EQ(receiver.core.open_links(), 0u);
  EXPECT_EQ(holder.core.open_transfers(), 0u);
  EXPECT_EQ(receiver.core.open_landings(), 0u);
}

}  // namespace
}  // namespace baton::transfer
