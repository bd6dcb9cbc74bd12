// Transfers over a transport that spoils one message: each fault ends in time,
// clearly on both sides, and never in a wrong block.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/random_bytes.h"
#include "common/base/strings.h"
#include "kv_transfer/fault/fault_transport.h"
#include "kv_transfer/transfer_core.h"
#include "tests/conformance/transport/transport_suite.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerEpoch kEpoch(1);
constexpr kernels::KvLayout kLayout{
    .layers = 4, .kv_heads = 2, .head_dim = 64, .type = kernels::KvType::kF16};
constexpr uint32_t kBlocks = 3;
// What a holder sends: BEGIN, frames, SEAL; and a receiver: ACK.
constexpr uint64_t kHolderMessages = kBlocks + 2;

TransferOptions Options() {
  TransferOptions options;
  options.epoch = kEpoch;
  options.fingerprint = std::string(32, 'f');
  options.layout = kLayout;
  options.abort_grace = milliseconds(300);
  options.random = FillRandom;
  return options;
}

// A core on the transport under test with one fault, and what it said.
struct Side {
  explicit Side(std::vector<FaultSpec> faults)
      : transport(MakeTransportUnderTest(), std::move(faults)),
        core(&transport, Options()) {}
  ~Side() {
    core.CloseLinks();
    const MonotonicTime end = MonotonicNow() + seconds(5);
    while (core.open_links() > 0 && MonotonicNow() < end) Poll();
  }
  bool Poll() { return core.Poll(MonotonicNow(), &events); }

  template <class Event>
  std::vector<Event> All() const {
    std::vector<Event> found;
    for (const TransferEvent& event : events) {
      if (const auto* match = std::get_if<Event>(&event)) {
        found.push_back(*match);
      }
    }
    return found;
  }

  FaultTransport transport;
  TransferCore core;
  std::vector<TransferEvent> events;
};

// One transfer from a holder to a receiver.
struct Pair {
  Pair(std::vector<FaultSpec> of_holder, std::vector<FaultSpec> of_receiver)
      : holder(std::move(of_holder)), receiver(std::move(of_receiver)) {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      source.push_back(Pattern(kLayout.block_bytes(), i));
    }
  }

  void Start(Duration timeout) {
    holder.events.clear();
    receiver.events.clear();
    target.assign(kBlocks, std::vector<std::byte>(kLayout.block_bytes()));
    LandingSpec spec;
    spec.token_count = kBlocks * 16;
    spec.timeout = timeout;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      spec.blocks.push_back({kEpoch, BlockId(i), Generation(1)});
      spec.memory.push_back(target[i].data());
    }
    const MonotonicTime now = MonotonicNow();
    const auto ticket = receiver.core.OpenLanding(std::move(spec), now);
    ASSERT_TRUE(ticket.ok());
    const auto id = holder.core.OpenTransfer(*ticket, now + timeout, now);
    ASSERT_TRUE(id.ok()) << id.status();
    for (uint32_t i = 0; i < kBlocks; ++i) {
      ASSERT_TRUE(holder.core.PushBlock(*id, i, source[i], 16).ok());
    }
    ASSERT_TRUE(holder.core.Seal(*id, {}).ok());
  }

  bool Poll() { return int{holder.Poll()} + int{receiver.Poll()} > 0; }
  bool Over() const {
    return holder.core.open_transfers() == 0 &&
           receiver.core.open_landings() == 0;
  }
  bool Succeeded() const {
    return receiver.All<LandingVerified>().size() == 1 &&
           holder.All<TransferAcked>().size() == 1;
  }

  // Whatever happened: one end on each side, told in order, no wrong block.
  void ExpectProperEnd() const {
    const size_t verified = receiver.All<LandingVerified>().size();
    const size_t acked = holder.All<TransferAcked>().size();
    EXPECT_EQ(verified + receiver.All<LandingClosed>().size(), 1u);
    EXPECT_EQ(acked + holder.All<TransferClosed>().size(), 1u);
    EXPECT_EQ(receiver.All<LandingFailed>().size(),
              receiver.All<LandingClosed>().size());
    EXPECT_EQ(holder.All<TransferFailed>().size(),
              holder.All<TransferClosed>().size());
    EXPECT_LE(acked, verified);
    for (const auto& failed : receiver.All<LandingFailed>()) {
      EXPECT_FALSE(failed.status.message().empty());
    }
    for (const auto& failed : holder.All<TransferFailed>()) {
      EXPECT_FALSE(failed.status.message().empty());
    }
    EXPECT_TRUE(verified == 0 || source == target);
  }

  Side holder;
  Side receiver;
  std::vector<std::vector<std::byte>> source;
  std::vector<std::vector<std::byte>> target;
};

bool PollUntilAllOver(const std::vector<std::unique_ptr<Pair>>& pairs) {
  const MonotonicTime end = MonotonicNow() + seconds(30);
  while (!std::ranges::all_of(pairs, &Pair::Over,
                              [](const auto& p) -> Pair& { return *p; })) {
    if (MonotonicNow() > end) return false;
    bool any = false;
    for (const auto& pair : pairs) any |= pair->Poll();
    if (!any) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

class TransferFaultTest : public ::testing::TestWithParam<FaultKind> {
 protected:
  // One pair per message of the holder, and one whose receiver's ACK suffers.
  void Run() {
    for (uint64_t message = 1; message <= kHolderMessages; ++message) {
      pairs.push_back(std::make_unique<Pair>(
          std::vector<FaultSpec>{{GetParam(), message, 0}},
          std::vector<FaultSpec>{}));
    }
    pairs.push_back(std::make_unique<Pair>(
        std::vector<FaultSpec>{}, std::vector<FaultSpec>{{GetParam(), 1, 0}}));
    for (const auto& pair : pairs) pair->Start(milliseconds(1500));
    ASSERT_TRUE(PollUntilAllOver(pairs)) << "not within the deadlines";
    for (size_t i = 0; i < pairs.size(); ++i) {
      SCOPED_TRACE(StrCat("message ", i + 1));
      pairs[i]->ExpectProperEnd();
      EXPECT_EQ(pairs[i]->holder.transport.faults_done() +
                    pairs[i]->receiver.transport.faults_done(),
                1u)
          << "the fault took effect";
    }
  }
  // CASES 2.39, 1.19: the same two go on with each other.
  void GoOn() {
    for (const auto& pair : pairs) pair->Start(seconds(20));
    ASSERT_TRUE(PollUntilAllOver(pairs));
    for (const auto& pair : pairs) {
      pair->ExpectProperEnd();
      EXPECT_TRUE(pair->Succeeded());
    }
  }
  Pair& AckSuffers() { return *pairs.back(); }

  std::vector<std::unique_ptr<Pair>> pairs;
};

// CASES 1.28, 2.18: a completion that comes late delays and changes nothing.
class HarmlessFaultTest : public TransferFaultTest {};

TEST_P(HarmlessFaultTest, ChangesNothing) {
  Run();
  for (const auto& pair : pairs) EXPECT_TRUE(pair->Succeeded());
  GoOn();
}

INSTANTIATE_TEST_SUITE_P(Kinds, HarmlessFaultTest,
                         ::testing::Values(FaultKind::kLate,
                                           FaultKind::kDuplicate),
                         [](const auto& test) {
                           return std::string(FaultKindName(test.param));
                         });

// CASES 1.26, 1.29, 1.31, 1.35, 2.1, 2.9, 2.24, 2.30: what is lost, damaged or
// never posted fails the transfer on both sides, and is never verified.
class HarmfulFaultTest : public TransferFaultTest {};

TEST_P(HarmfulFaultTest, FailsBothSides) {
  Run();
  for (size_t i = 0; i + 1 < pairs.size(); ++i) {
    SCOPED_TRACE(StrCat("message ", i + 1));
    const auto landing = pairs[i]->receiver.All<LandingFailed>();
    const auto transfer = pairs[i]->holder.All<TransferFailed>();
    ASSERT_EQ(landing.size(), 1u);
    ASSERT_EQ(transfer.size(), 1u);
    const bool frame = i >= 1 && i <= kBlocks;
    if (GetParam() == FaultKind::kFlip && frame) {
      EXPECT_TRUE(absl::IsDataLoss(landing[0].status)) << landing[0].status;
      EXPECT_TRUE(absl::IsDataLoss(transfer[0].status)) << transfer[0].status;
    }
  }
  // The receiver has it all; the holder cannot know.
  EXPECT_EQ(AckSuffers().receiver.All<LandingVerified>().size(), 1u);
  EXPECT_EQ(AckSuffers().holder.All<TransferFailed>().size(), 1u);
  GoOn();
}

INSTANTIATE_TEST_SUITE_P(Kinds, HarmfulFaultTest,
                         ::testing::Values(FaultKind::kRefuse, FaultKind::kFail,
                                           FaultKind::kTruncate,
                                           FaultKind::kFlip, FaultKind::kDrop),
                         [](const auto& test) {
                           return std::string(FaultKindName(test.param));
                         });

// Only BEGIN must come first, and even it may when it was held back for so
// little time that nothing overtook it.
class ReorderFaultTest : public TransferFaultTest {};

TEST_P(ReorderFaultTest, OnlyBeginMustComeFirst) {
  Run();
  for (size_t i = 1; i < pairs.size(); ++i) {
    EXPECT_TRUE(pairs[i]->Succeeded()) << i + 1;
  }
  GoOn();
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReorderFaultTest,
                         ::testing::Values(FaultKind::kReorder),
                         [](const auto& test) {
                           return std::string(FaultKindName(test.param));
                         });

// Many faults of all kinds while transfers go on; then it heals.
TEST(TransferFaultMixTest, ManyFaultsThenNone) {
  std::vector<std::unique_ptr<Pair>> pairs;
  for (uint64_t i = 0; i < 8; ++i) {
    // Of messages 1 to 70, one in seven; its kind is another each time.
    std::vector<FaultSpec> faults;
    for (uint64_t n = 0; n < 10; ++n) {
      faults.push_back({static_cast<FaultKind>((i + n) % 8), 7 * n + i % 7, 0});
    }
    pairs.push_back(std::make_unique<Pair>(faults, std::vector<FaultSpec>{}));
  }
  size_t failures = 0;
  for (int round = 0; round < 12; ++round) {
    for (const auto& pair : pairs) pair->Start(milliseconds(400));
    ASSERT_TRUE(PollUntilAllOver(pairs)) << round;
    for (const auto& pair : pairs) {
      pair->ExpectProperEnd();
      failures += !pair->Succeeded();
    }
  }
  EXPECT_GE(failures, 20u) << "the faults took effect";
  for (const auto& pair : pairs) {
    while (pair->holder.transport.messages() < 80) {
      pair->Start(milliseconds(400));
      ASSERT_TRUE(PollUntilAllOver(pairs));
    }
    pair->Start(seconds(20));
    ASSERT_TRUE(PollUntilAllOver(pairs));
    EXPECT_TRUE(pair->Succeeded());
  }
}

}  // namespace
}  // namespace baton::transfer
