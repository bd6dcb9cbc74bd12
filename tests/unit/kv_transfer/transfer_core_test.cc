#include "kv_transfer/transfer_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kv_transfer/ticket.h"
#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

class TransferCoreTest : public ::testing::Test, public CoreFixture {
 protected:
  void ExpectHandedOver() {
    ASSERT_EQ(receiver.events.size(), 1u);
    const auto verified = receiver.All<LandingVerified>();
    ASSERT_EQ(verified.size(), 1u);
    EXPECT_EQ(verified[0].landing, landing());
    EXPECT_EQ(verified[0].blocks, kBlocks);
    EXPECT_EQ(verified[0].bytes, kBlocks * kTinyLayout.block_bytes());
    ASSERT_EQ(verified[0].seal.first_tokens_size(), 1);
    EXPECT_EQ(verified[0].seal.first_tokens(0).token_id(), 4711u);
    ASSERT_EQ(holder.events.size(), 1u);
    const auto acked = holder.All<TransferAcked>();
    ASSERT_EQ(acked.size(), 1u);
    EXPECT_EQ(acked[0].transfer, transfer);
    EXPECT_EQ(acked[0].blocks, kBlocks);
    EXPECT_TRUE(source == target);
    EXPECT_TRUE(AllOver());
  }
};

TEST_F(TransferCoreTest, HandsOver) {
  Open();
  EXPECT_EQ(ticket.token_count(), 40u);
  EXPECT_EQ(ticket.block_count(), 3u);
  EXPECT_EQ(ticket.worker_epoch(), 2u);
  EXPECT_EQ(ticket.transport(), "fake");
  EXPECT_EQ(ticket.address(), "receiver");
  EXPECT_EQ(ticket.timeout_ms(), 10'000u);
  Start();
  PushAllAndSeal();
  now += milliseconds(5);
  Flow();
  ExpectHandedOver();
  EXPECT_EQ(holder.core.counters().frames_sent, 3u);
  EXPECT_EQ(receiver.core.counters().frames_received, 3u);
  EXPECT_EQ(receiver.core.counters().stale_messages, 0u);
  EXPECT_EQ(holder.core.NextDeadline(), kNever);
  EXPECT_EQ(receiver.core.NextDeadline(), kNever);
}

TEST_F(TransferCoreTest, BlocksStreamInAnyOrderWhileLaterOnesAreComputed) {
  Open();
  Start();
  for (const uint32_t ordinal : {2, 0, 1}) {
    ASSERT_TRUE(Push(ordinal).ok());
    now += milliseconds(10);
    Flow();
    EXPECT_TRUE(receiver.events.empty());
  }
  ASSERT_TRUE(holder.core.Seal(transfer, SealOf(4711)).ok());
  Flow();
  ExpectHandedOver();
  EXPECT_EQ(receiver.All<LandingVerified>()[0].transfer_time, milliseconds(20));
}

TEST_F(TransferCoreTest, ProgressIsToldWhileBlocksArriveSlowly) {
  const TransferOptions options = TinyOptions(2);
  Open();
  Start();
  Flow();
  ASSERT_TRUE(Push(0).ok());
  now += options.progress_interval / 2;
  Flow();
  EXPECT_TRUE(receiver.events.empty()) << "too soon";
  ASSERT_TRUE(Push(1).ok());
  now += options.progress_interval / 2;
  Flow();
  ASSERT_EQ(receiver.All<LandingProgress>().size(), 1u);
  EXPECT_EQ(receiver.All<LandingProgress>()[0].landing, landing());
  EXPECT_EQ(receiver.All<LandingProgress>()[0].blocks, 2u);
  now += seconds(5);
  Flow();
  EXPECT_EQ(receiver.events.size(), 1u) << "nothing arrived";
  ASSERT_TRUE(Push(2).ok());
  ASSERT_TRUE(holder.core.Seal(transfer, SealOf(4711)).ok());
  Flow();
  ASSERT_EQ(receiver.All<LandingProgress>().size(), 2u);
  EXPECT_EQ(receiver.All<LandingProgress>()[1].blocks, 3u);
  EXPECT_TRUE(std::holds_alternative<LandingVerified>(receiver.events.back()));
}

TEST_F(TransferCoreTest, AnEmptySealIsASeal) {
  Open();
  Start();
  for (uint32_t i = 0; i < kBlocks; ++i) ASSERT_TRUE(Push(i).ok());
  ASSERT_TRUE(holder.core.Seal(transfer, SealContents()).ok());
  Flow();
  EXPECT_EQ(receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(holder.All<TransferAcked>().size(), 1u);
}

TEST_F(TransferCoreTest, HeldBlocksDoNotTravel) {
  LandingSpec spec = SpecFor(&target, kTokens, 2);
  spec.held_tokens = 32;
  ticket = *receiver.core.OpenLanding(spec, now);
  EXPECT_EQ(ticket.held_tokens(), 32u);
  Start();
  EXPECT_EQ(Text(Push(1)), "ordinal: got 1, allowed 2..2");
  ASSERT_TRUE(Push(2).ok());
  ASSERT_TRUE(holder.core.Seal(transfer, SealOf(1)).ok());
  const auto before = target.block(0);
  Flow();
  ASSERT_EQ(receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(receiver.All<LandingVerified>()[0].blocks, 1u);
  EXPECT_EQ(target.block(0), before);
  EXPECT_EQ(target.block(2), source.block(2));
}

TEST_F(TransferCoreTest, ALandingMayBeAdoptedWhenItsBeginArrives) {
  const LandingSpec spec = SpecFor(&target, kTokens, 2);
  ticket = IssueTicket(spec, TinyOptions(2), "fake", "receiver");
  int asked = 0;
  receiver.core.OnUnknownLanding([&] {
    if (asked++ == 0) receiver.core.AdoptLanding(ticket, spec, now);
  });
  Start();
  PushAllAndSeal();
  Flow();
  ExpectHandedOver();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(receiver.core.counters().refused_begins, 0u);
  holder.events.clear();
  Start();
  Flow();
  EXPECT_EQ(asked, 2) << "the ticket is used up: still refused";
  EXPECT_TRUE(absl::IsNotFound(holder.All<TransferFailed>().at(0).status));
}

TEST_F(TransferCoreTest, MemoryIsLetGoOnlyWhenTheTransportHasLetGo) {
  Open();
  Start();
  PushAllAndSeal();
  Poll();
  net.hold_sent = true;  // the last frame has arrived, its OnSent has not
  net.Deliver(OfType(2)[2]);
  net.hold_sent = false;
  Flow();
  EXPECT_TRUE(receiver.events.empty()) << "BEGIN came after the frame";
  now += seconds(30);
  Flow();
  EXPECT_TRUE(holder.All<TransferClosed>().empty());
  EXPECT_EQ(holder.core.open_transfers(), 1u);
  net.ReleaseSent();
  Flow();
  EXPECT_EQ(holder.All<TransferClosed>().size(), 1u);
}

TEST_F(TransferCoreTest, AnAcknowledgedTransferWaitsForTheTransportToo) {
  Open();
  Start();
  PushAllAndSeal();
  Poll();
  net.Deliver(0);
  net.hold_sent = true;
  net.Deliver(0);
  net.hold_sent = false;
  Flow();
  EXPECT_EQ(receiver.All<LandingVerified>().size(), 1u);
  EXPECT_TRUE(holder.events.empty()) << "a block is still being read";
  net.ReleaseSent();
  Flow();
  ExpectHandedOver();
}

TEST_F(TransferCoreTest, ABlockIsNotVerifiedBeforeItsBytesAreHere) {
  Open();
  Start();
  PushAllAndSeal();
  Poll();
  net.Deliver(0);
  const auto frame = net.DeliverHeader(0);
  Flow();
  EXPECT_TRUE(receiver.events.empty());
  frame();
  Flow();
  ExpectHandedOver();
}

// --- refusals ---

struct BadTicket {
  const char* name;
  std::function<void(Ticket*)> change;
  absl::StatusCode code;
  const char* message;
};

TEST_F(TransferCoreTest, RefusesTicketsThatAreNotTheOneIssued) {
  Open();
  const Ticket good = ticket;
  const BadTicket cases[] = {
      {"unknown landing", [](Ticket* t) { t->set_landing_id(5); },
       absl::StatusCode::kNotFound, "landing: no such landing is open"},
      {"wrong nonce", [](Ticket* t) { (*t->mutable_nonce())[15] ^= 1; },
       absl::StatusCode::kNotFound, "landing: no such landing is open"},
      {"earlier life", [](Ticket* t) { t->set_worker_epoch(77); },
       absl::StatusCode::kFailedPrecondition,
       "worker_epoch: got 77, a ticket of an earlier life of this worker"},
      {"more tokens", [](Ticket* t) { t->set_token_count(41); },
       absl::StatusCode::kInvalidArgument, "token_count: got 41, allowed 40"},
      {"other held tokens", [](Ticket* t) { t->set_held_tokens(16); },
       absl::StatusCode::kInvalidArgument, "held_tokens: got 16, allowed 0"},
  };
  for (const BadTicket& c : cases) {
    SCOPED_TRACE(c.name);
    holder.events.clear();
    ticket = good;
    c.change(&ticket);
    Start();
    PushAllAndSeal();
    Flow();
    const auto failed = holder.All<TransferFailed>();
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].status.code(), c.code);
    EXPECT_EQ(Text(failed[0].status), c.message);
    EXPECT_EQ(holder.All<TransferClosed>().size(), 1u);
    EXPECT_EQ(holder.core.open_transfers(), 0u);
    EXPECT_TRUE(receiver.events.empty());
  }
  EXPECT_GE(receiver.core.counters().refused_begins, std::size(cases));
  holder.events.clear();
  ticket = good;
  Start();
  PushAllAndSeal();
  Flow();
  ExpectHandedOver();
}

TEST_F(TransferCoreTest, EverySingleBitOfIdAndNonceMatters) {
  Open();
  const Ticket good = ticket;
  for (int bit = 0; bit < 64 + 128; ++bit) {
    ticket = good;
    if (bit < 64) {
      ticket.set_landing_id(good.landing_id() ^ (uint64_t{1} << bit));
    } else {
      (*ticket.mutable_nonce())[(bit - 64) / 8] ^=
          static_cast<char>(1 << (bit % 8));
    }
    holder.events.clear();
    Start();
    Flow();
    ASSERT_EQ(holder.All<TransferFailed>().size(), 1u) << bit;
    EXPECT_TRUE(absl::IsNotFound(holder.All<TransferFailed>()[0].status));
  }
}

TEST_F(TransferCoreTest, ATicketWorksOnceAndTheFirstTransferIsUnharmed) {
  Open();
  const TransferId first = Start();
  ASSERT_TRUE(Push(0).ok());
  Flow();
  const TransferId second = Start();
  PushAllAndSeal();
  Flow();
  const auto failed = holder.All<TransferFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].transfer, second);
  EXPECT_TRUE(absl::IsAlreadyExists(failed[0].status));
  EXPECT_EQ(receiver.core.counters().refused_begins, 2u);  // BEGIN and SEAL
  holder.events.clear();
  transfer = first;
  ASSERT_TRUE(Push(1).ok());
  ASSERT_TRUE(Push(2).ok());
  ASSERT_TRUE(holder.core.Seal(first, SealOf(4711)).ok());
  Flow();
  ExpectHandedOver();
}

TEST_F(TransferCoreTest, AThirdPartyCannotTouchATransfer) {
  Party thief(&net, "thief", 3);
  Open();
  Start();
  ASSERT_TRUE(Push(0).ok());
  Flow();
  const LinkId link = *thief.transport->Connect("receiver");
  const auto send = [&](MessageBody body, absl::Span<const std::byte> payload) {
    const EncodedHeader header =
        EncodeHeader({key(), Recipient::kReceiver, std::move(body)}, payload);
    net.Inject(thief.transport, link,
               {header.span().begin(), header.span().end()}, payload);
  };
  const std::vector<std::byte> forged(kTinyLayout.block_bytes(),
                                      std::byte{0x66});
  send(Frame{1, 1, 0, 2, 16}, forged);
  send(SealMark{3}, {});
  send(AbortNotice{}, {});
  send(AbortAck{}, {});
  Flow();
  EXPECT_TRUE(receiver.events.empty());
  EXPECT_NE(target.block(1), forged);
  ASSERT_TRUE(Push(1).ok());
  ASSERT_TRUE(Push(2).ok());
  ASSERT_TRUE(holder.core.Seal(transfer, SealOf(4711)).ok());
  Flow();
  ExpectHandedOver();
}

TEST_F(TransferCoreTest, APeerThatOnlyGuessesIsCutOff) {
  const LinkId link = *holder.transport->Connect("receiver");
  Begin begin;
  begin.epoch = WorkerEpoch(2);
  for (uint64_t i = 0; i < 10'000 && net.IsOpen(holder.transport, link); ++i) {
    TransferKey guess;
    guess.landing = LandingId(i + 1);
    const EncodedHeader header =
        EncodeHeader({guess, Recipient::kReceiver, begin}, {});
    net.Inject(holder.transport, link,
               {header.span().begin(), header.span().end()}, {});
    Flow();
  }
  EXPECT_FALSE(net.IsOpen(holder.transport, link));
  EXPECT_EQ(receiver.core.counters().refused_begins, 256u);
}

TEST_F(TransferCoreTest, AnotherProtocolVersionIsToldTheRange) {
  Open();
  Start();
  Poll();
  ASSERT_EQ(net.wire.size(), 1u);
  net.wire[0].header[4] = std::byte{9};
  Flow();
  const auto failed = holder.All<TransferFailed>();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(Text(failed[0].status), "protocol: got 9, allowed 1..1");
}

TEST_F(TransferCoreTest, GarbageClosesTheLinkAndNothingElse) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const LinkId link = *holder.transport->Connect("receiver");
    std::vector<std::byte> header(random() % 257);
    for (std::byte& b : header) b = static_cast<std::byte>(random());
    if (round % 2 == 0 && header.size() >= 8) {
      const uint8_t valid[] = {0x42,
                               0x54,
                               0x4e,
                               0x4b,
                               1,
                               0,
                               static_cast<uint8_t>(random() % 9),
                               static_cast<uint8_t>(random() % 3)};
      std::memcpy(header.data(), valid, sizeof(valid));
    }
    net.Inject(holder.transport, link, header,
               std::vector<std::byte>(random() % 3 == 0 ? 100 : 0));
    Flow();
    EXPECT_FALSE(net.IsOpen(holder.transport, link)) << round;
  }
  EXPECT_TRUE(receiver.events.empty());
  EXPECT_EQ(receiver.core.open_links(), 0u);
}

// --- breaches of protocol in a transfer that has begun ---

struct Breach {
  const char* name;
  MessageBody body;
  size_t payload_bytes;
  absl::StatusCode code;
  const char* message;
};

TEST(TransferCoreBreachTest, FailsTheLandingTellsBothAndNamesTheField) {
  const size_t kBytes = kTinyLayout.block_bytes();
  const Breach cases[] = {
      {"ordinal", Frame{1, 3, 0, 2, 16}, kBytes,
       absl::StatusCode::kInvalidArgument, "ordinal: got 3, allowed 0..2"},
      {"ordinal again", Frame{9, 0, 0, 2, 16}, kBytes,
       absl::StatusCode::kInvalidArgument,
       "ordinal: got 0 in frames 0 and 9, allowed once"},
      {"short block", Frame{1, 1, 0, 2, 16}, kBytes - 1,
       absl::StatusCode::kInvalidArgument, "length: got 255, allowed 256"},
      {"long block", Frame{1, 1, 0, 2, 16}, kBytes * 1000,
       absl::StatusCode::kInvalidArgument, "length: got 256000, allowed 256"},
      {"layers", Frame{1, 1, 0, 1, 16}, kBytes,
       absl::StatusCode::kInvalidArgument,
       "layer range: got 0..1, allowed 0..2"},
      {"written", Frame{1, 2, 0, 2, 16}, kBytes,
       absl::StatusCode::kInvalidArgument,
       "written_tokens: got 16, allowed 8 in block 2"},
      {"seal before data", SealMark{1}, 0,
       absl::StatusCode::kFailedPrecondition,
       "seal: after 1 frames, allowed 3"},
      {"huge seal", SealMark{3}, kMaxSealBytes + 1,
       absl::StatusCode::kInvalidArgument,
       "seal: got 262145 bytes, allowed 262144"},
      {"seal of nonsense", SealMark{3}, 20, absl::StatusCode::kInvalidArgument,
       "seal: not a SealContents message"},
  };
  for (const Breach& c : cases) {
    SCOPED_TRACE(c.name);
    CoreFixture f;
    f.Open();
    f.Start();
    ASSERT_TRUE(f.Push(0).ok());
    f.Poll();
    ASSERT_EQ(f.net.wire.size(), 2u);
    const LinkId link = f.net.wire[0].from_link;
    const std::vector<std::byte> payload(c.payload_bytes, std::byte{0xff});
    const EncodedHeader header =
        EncodeHeader({f.key(), Recipient::kReceiver, c.body}, payload);
    f.net.Inject(f.holder.transport, link,
                 {header.span().begin(), header.span().end()}, payload);
    f.Flow();
    const auto failed = f.receiver.All<LandingFailed>();
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].status.code(), c.code);
    EXPECT_EQ(Text(failed[0].status), c.message);
    EXPECT_EQ(f.receiver.All<LandingClosed>().size(), 1u);
    const auto told = f.holder.All<TransferFailed>();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_THAT(Text(told[0].status), HasSubstr(c.message));
    EXPECT_EQ(f.holder.All<TransferClosed>().size(), 1u);
    EXPECT_TRUE(f.AllOver());
    EXPECT_EQ(f.net.closes(), 0u) << "the link is good for others";
  }
}

TEST_F(TransferCoreTest, AFlippedBitIsFoundWhereverItIs) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    CoreFixture f;
    f.Open();
    f.Start();
    f.PushAllAndSeal();
    f.Poll();
    // A frame or the seal; in the header or in the payload.
    const size_t victim = 1 + random() % 4;
    Packet& packet = f.net.wire[victim];
    std::vector<std::byte> damaged(packet.payload.begin(),
                                   packet.payload.end());
    const size_t bits = 8 * (packet.header.size() + damaged.size());
    const size_t bit = random() % bits;
    if (bit / 8 < packet.header.size()) {
      packet.header[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    } else {
      damaged[bit / 8 - packet.header.size()] ^=
          static_cast<std::byte>(1 << bit % 8);
    }
    packet.payload = damaged;
    f.Settle();
    EXPECT_TRUE(f.receiver.All<LandingVerified>().empty()) << bit;
    EXPECT_TRUE(f.holder.All<TransferAcked>().empty());
    EXPECT_EQ(f.receiver.All<LandingClosed>().size(), 1u);
    EXPECT_EQ(f.holder.All<TransferClosed>().size(), 1u);
    EXPECT_TRUE(f.AllOver());
  }
}

}  // namespace
}  // namespace baton::transfer
