// What is checked before anything is sent: landings, tickets, pushes, seals.
#include "kv_transfer/ticket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

class TicketTest : public ::testing::Test, public CoreFixture {};

TEST_F(TicketTest, ChecksLandings) {
  const auto error = [&](auto change) {
    LandingSpec spec = SpecFor(&target, kTokens, 2);
    change(&spec);
    const auto opened = receiver.core.OpenLanding(spec, now);
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
    return Text(opened.status());
  };
  EXPECT_EQ(error([](LandingSpec* s) { s->token_count = 0; }),
            "token_count: got 0, allowed 1..16777216");
  EXPECT_EQ(error([](LandingSpec* s) {
              s->token_count = 33;
              s->blocks.pop_back();
            }),
            "block_count: got 2, allowed 3 for 33 tokens");
  EXPECT_EQ(error([](LandingSpec* s) { s->memory.pop_back(); }),
            "memory: got 2, allowed 3, one per block");
  EXPECT_EQ(error([](LandingSpec* s) { s->memory[1] = nullptr; }),
            "memory: null");
  EXPECT_EQ(error([](LandingSpec* s) { s->held_tokens = 8; }),
            "held_tokens: got 8, allowed multiples of 16 up to 40");
  EXPECT_EQ(error([](LandingSpec* s) { s->held_tokens = 48; }),
            "held_tokens: got 48, allowed multiples of 16 up to 40");
  EXPECT_EQ(error([](LandingSpec* s) { s->blocks[0].epoch = WorkerEpoch(9); }),
            "blocks.epoch: got 9, allowed 2");
  EXPECT_EQ(error([](LandingSpec* s) { s->timeout = {}; }),
            "timeout: must be positive");
  EXPECT_EQ(receiver.core.open_landings(), 0u);
}

TEST_F(TicketTest, ChecksTickets) {
  Open();
  const auto error = [&](auto change) {
    Ticket bad = ticket;
    change(&bad);
    const auto opened = holder.core.OpenTransfer(bad, now + seconds(1), now);
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
    return Text(opened.status());
  };
  EXPECT_EQ(error([](Ticket* t) { t->set_landing_id(0); }),
            "ticket.landing_id: got 0, allowed not 0");
  EXPECT_EQ(error([](Ticket* t) { t->set_nonce("short"); }),
            "ticket.nonce: got 5, allowed 16 bytes");
  EXPECT_EQ(error([](Ticket* t) { t->set_transport("nccl"); }),
            "ticket.transport: got 'nccl', allowed 'fake'");
  EXPECT_EQ(error([](Ticket* t) { t->set_address(""); }),
            "ticket.address: got 0, allowed 1..4096 bytes");
  EXPECT_EQ(error([](Ticket* t) { t->set_address(std::string(4097, 'a')); }),
            "ticket.address: got 4097, allowed 1..4096 bytes");
  EXPECT_EQ(error([](Ticket* t) { t->set_address("nowhere"); }),
            "address: unknown");
  EXPECT_EQ(error([](Ticket* t) { t->set_fingerprint(""); }),
            "ticket.fingerprint: got 0, allowed 32 bytes");
  EXPECT_EQ(
      error([](Ticket* t) { t->set_fingerprint(std::string(1 << 20, 'f')); }),
      "ticket.fingerprint: got 1048576, allowed 32 bytes");
  EXPECT_THAT(
      error([](Ticket* t) { t->set_fingerprint(std::string(32, 'g')); }),
      HasSubstr("not exchangeable"));
  EXPECT_EQ(error([](Ticket* t) { t->set_block_count(10'000'000); }),
            "ticket.block_count: got 10000000, allowed 3 for 40 tokens");
  EXPECT_EQ(error([](Ticket* t) { t->set_token_count(4'000'000'000u); }),
            "ticket.token_count: got 4000000000, allowed 1..16777216");
  EXPECT_EQ(error([](Ticket* t) { t->set_held_tokens(7); }),
            "ticket.held_tokens: got 7, allowed multiples of 16 up to 40");
  EXPECT_EQ(holder.core.open_transfers(), 0u);
}

TEST_F(TicketTest, ChecksPushesAndSeals) {
  Open();
  Start();
  const auto push = [&](uint32_t ordinal, size_t bytes, uint32_t written) {
    const std::vector<std::byte> memory(bytes);
    return Text(holder.core.PushBlock(transfer, ordinal, memory, written));
  };
  EXPECT_EQ(push(3, 256, 16), "ordinal: got 3, allowed 0..2");
  EXPECT_EQ(push(0, 255, 16), "memory: got 255 bytes, allowed 256");
  EXPECT_EQ(push(0, 256, 15), "written_tokens: got 15, allowed 16 in block 0");
  EXPECT_EQ(push(2, 256, 16), "written_tokens: got 16, allowed 8 in block 2");
  EXPECT_EQ(Text(holder.core.Seal(transfer, {})),
            "seal: 0 of 3 blocks were pushed");
  ASSERT_TRUE(Push(0).ok());
  EXPECT_EQ(Text(Push(0)), "ordinal: got 0 twice");
  ASSERT_TRUE(Push(1).ok());
  ASSERT_TRUE(Push(2).ok());
  SealContents huge;
  huge.add_first_tokens()->set_text(std::string(300'000, 'x'));
  EXPECT_THAT(Text(holder.core.Seal(transfer, huge)), HasSubstr("262144"));
  ASSERT_TRUE(holder.core.Seal(transfer, {}).ok());
  EXPECT_EQ(Text(holder.core.Seal(transfer, {})),
            "seal: the transfer is SEALED");
  EXPECT_EQ(holder.core.PushBlock(TransferId(99), 0, {}, 0).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(holder.core.Seal(TransferId(99), {}).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(TicketTest, LimitsLandings) {
  TransferOptions options = TinyOptions(4);
  options.max_landings = 2;
  Party small(&net, "small", options);
  ASSERT_TRUE(small.core.OpenLanding(SpecFor(&target, kTokens, 4), now).ok());
  const Ticket second =
      *small.core.OpenLanding(SpecFor(&target, kTokens, 4), now);
  const auto third = small.core.OpenLanding(SpecFor(&target, kTokens, 4), now);
  EXPECT_TRUE(absl::IsResourceExhausted(third.status()));
  EXPECT_EQ(Text(third.status()), "landings: all 2 are open");
  small.core.CancelLanding(LandingId(second.landing_id()), now);
  EXPECT_TRUE(small.core.OpenLanding(SpecFor(&target, kTokens, 4), now).ok());
}

}  // namespace
}  // namespace baton::transfer
