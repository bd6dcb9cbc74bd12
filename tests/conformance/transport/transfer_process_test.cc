// Transfers between processes, one of which is killed, stopped, or slow.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "tests/conformance/transport/core_node.h"
#include "tests/conformance/transport/peer_process.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Hex(const Ticket& ticket) {
  return absl::BytesToHexString(ticket.SerializeAsString());
}

Ticket FromHex(const std::string& hex) {
  Ticket ticket;
  EXPECT_TRUE(ticket.ParseFromString(absl::HexStringToBytes(hex)));
  return ticket;
}

TEST(TransferProcessTest, ReceivesFromAnotherProcess) {
  PeerProcess peer;
  CoreNode node;
  for (int round = 0; round < 3; ++round) {
    const Ticket ticket = node.Land(16);
    ASSERT_EQ(peer.Ask("push " + Hex(ticket) + " 16"), "ok");
    ASSERT_TRUE(node.PollUntil("LandingVerified")) << node.TakeEvents();
    EXPECT_TRUE(node.LandedIntact());
    EXPECT_EQ(node.TakeEvents(), "LandingVerified");
  }
}

TEST(TransferProcessTest, PushesToAnotherProcess) {
  PeerProcess peer;
  CoreNode node;
  for (int round = 0; round < 3; ++round) {
    node.Push(FromHex(peer.Ask("land 16")), 16);
    ASSERT_TRUE(node.PollUntil("TransferAcked")) << node.TakeEvents();
    EXPECT_EQ(node.TakeEvents(), "TransferAcked");
  }
}

// CASES 1.22: seen at once, not waited for.
TEST(TransferProcessTest, AHolderIsKilledInMidTransfer) {
  CoreNode node;
  for (int round = 0; round < 6; ++round) {
    PeerProcess peer;
    const Ticket ticket = node.Land(200);
    ASSERT_EQ(peer.Ask("push " + Hex(ticket) + " 199"), "ok");
    const uint64_t before = node.core()->counters().frames_received;
    const MonotonicTime start = MonotonicNow();
    while (node.core()->counters().frames_received <
               before + 1 + static_cast<uint64_t>(round) * 35 &&
           MonotonicNow() - start < seconds(30)) {
      node.Poll();
    }
    ASSERT_GE(node.core()->counters().frames_received,
              before + 1 + static_cast<uint64_t>(round) * 35)
        << "round " << round << " peer: " << peer.Ask("events");
    peer.Signal(SIGKILL);
    ASSERT_TRUE(node.PollUntil("LandingClosed"));
    EXPECT_EQ(node.TakeEvents(), "LandingFailed:UNAVAILABLE LandingClosed");
    EXPECT_EQ(node.core()->counters().deadlines, 0u)
        << "the death was seen, not waited for";
  }
  EXPECT_EQ(node.core()->open_links(), 0u);
}

TEST(TransferProcessTest, AReceiverIsKilledInMidTransfer) {
  CoreNode node;
  for (int round = 0; round < 6; ++round) {
    PeerProcess peer;
    node.Push(FromHex(peer.Ask("land 200")), 199);
    const uint64_t before = node.core()->counters().frames_sent;
    const MonotonicTime start = MonotonicNow();
    while (node.core()->counters().frames_sent <
               before + static_cast<uint64_t>(round) * 35 &&
           MonotonicNow() - start < seconds(30)) {
      node.Poll();
    }
    peer.Signal(SIGKILL);
    ASSERT_TRUE(node.PollUntil("TransferClosed"));
    EXPECT_EQ(node.TakeEvents(), "TransferFailed:UNAVAILABLE TransferClosed");
    EXPECT_EQ(node.core()->counters().deadlines, 0u);
  }
  EXPECT_EQ(node.core()->open_links(), 0u);
}

// CASES 2.39, 1.22: whatever the dead one was doing to this process, it goes on
// serving the others, in both directions.
TEST(TransferProcessTest, APeerIsKilledAndTheOthersAreServed) {
  CoreNode node;
  PeerProcess other;
  for (int round = 0; round < 6; ++round) {
    PeerProcess doomed;
    node.Push(FromHex(doomed.Ask("land 100")), 99);
    const Ticket ticket = node.Land(100);
    ASSERT_EQ(doomed.Ask("push " + Hex(ticket) + " 99"), "ok");
    const uint64_t before = node.core()->counters().frames_received;
    const MonotonicTime start = MonotonicNow();
    while (node.core()->counters().frames_received < before + 2 + round &&
           MonotonicNow() - start < seconds(30)) {
      node.Poll();
    }
    doomed.Signal(SIGKILL);
    ASSERT_TRUE(node.PollUntil("LandingClosed"));
    ASSERT_TRUE(node.PollUntil("TransferClosed"));
    node.TakeEvents();
    const Ticket next = node.Land(8);
    ASSERT_EQ(other.Ask("push " + Hex(next) + " 8"), "ok");
    ASSERT_TRUE(node.PollUntil("LandingVerified")) << node.TakeEvents();
    EXPECT_TRUE(node.LandedIntact());
    node.Push(FromHex(other.Ask("land 8")), 8);
    ASSERT_TRUE(node.PollUntil("TransferAcked")) << node.TakeEvents();
    node.TakeEvents();
  }
  EXPECT_EQ(node.core()->counters().deadlines, 0u);
  EXPECT_EQ(node.core()->open_landings() + node.core()->open_transfers(), 0u);
}

// CASES 1.23. SIGSTOP: the connection looks alive, only deadlines help.
TEST(TransferProcessTest, AHolderStops) {
  PeerProcess peer;
  CoreNode node;
  const Ticket ticket = node.Land(200, milliseconds(700));
  ASSERT_EQ(peer.Ask("push " + Hex(ticket) + " 199"), "ok");
  while (node.core()->counters().frames_received < 3) node.Poll();
  peer.Signal(SIGSTOP);
  ASSERT_TRUE(node.PollUntil("LandingClosed"));
  EXPECT_EQ(node.TakeEvents(), "LandingFailed:DEADLINE_EXCEEDED LandingClosed");
  EXPECT_EQ(node.core()->counters().forced_closes, 1u);
  peer.Signal(SIGCONT);
  const std::string told = peer.Ask("events");
  const MonotonicTime start = MonotonicNow();
  std::string all = told;
  while (all.find("TransferClosed") == std::string::npos &&
         MonotonicNow() - start < seconds(20)) {
    node.Poll();
    all += " " + peer.Ask("events");
  }
  EXPECT_NE(all.find("TransferFailed"), std::string::npos) << all;
  // Both are good for another one.
  const Ticket next = node.Land(8);
  ASSERT_EQ(peer.Ask("push " + Hex(next) + " 8"), "ok");
  ASSERT_TRUE(node.PollUntil("LandingVerified")) << node.TakeEvents();
  EXPECT_TRUE(node.LandedIntact());
}

TEST(TransferProcessTest, AReceiverStops) {
  PeerProcess peer;
  CoreNode node;
  const Ticket ticket = FromHex(peer.Ask("land 200"));
  peer.Signal(SIGSTOP);
  node.Push(ticket, 200, milliseconds(700));
  ASSERT_TRUE(node.PollUntil("TransferClosed"));
  EXPECT_EQ(node.TakeEvents(),
            "TransferFailed:DEADLINE_EXCEEDED TransferClosed");
  EXPECT_EQ(node.core()->counters().forced_closes, 1u);
  peer.Signal(SIGCONT);
  peer.Ask("events");
  node.Push(FromHex(peer.Ask("land 8")), 8);
  ASSERT_TRUE(node.PollUntil("TransferAcked")) << node.TakeEvents();
}

TEST(TransferProcessTest, AStoppedReceiverDies) {
  PeerProcess peer;
  CoreNode node;
  const Ticket ticket = FromHex(peer.Ask("land 200"));
  node.Push(ticket, 200, milliseconds(700));
  while (node.core()->counters().frames_sent < 3) node.Poll();
  peer.Signal(SIGSTOP);
  ASSERT_TRUE(node.PollUntil("TransferClosed"));
  peer.Signal(SIGKILL);
  const MonotonicTime start = MonotonicNow();
  while (MonotonicNow() - start < milliseconds(300)) node.Poll();
  EXPECT_EQ(node.core()->open_links(), 0u);
}

}  // namespace
}  // namespace baton::transfer

int main(int argc, char** argv) {
  if (std::getenv(baton::transfer::PeerProcess::kVariable) != nullptr) {
    return baton::transfer::PeerProcess::Main();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
