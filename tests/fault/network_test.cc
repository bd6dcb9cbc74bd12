// Links between the processes go silent, are reset, are slow and lossy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/fault/network_cluster.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using Cut = VirtualNetwork::Cut;
using C = NetworkCluster;

class NetworkTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = NetworkCluster::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    net_ = *std::move(started);
  }
  static void TearDownTestSuite() {
    if (net_ != nullptr) {
      EXPECT_EQ(net_->cluster().processes().Drain(), absl::OkStatus());
    }
    net_.reset();
  }
  void SetUp() override { ASSERT_NE(net_, nullptr); }

  static FaultRun Disturbed(std::function<std::unique_ptr<Fault>()> moment) {
    FaultRun run;
    run.request = FixedRequest(500, 60, 78);
    run.moment = std::move(moment);
    run.min_replays = 1;
    return run;
  }

  // The link between the workers of a transfer is cut in its middle; `peer` is
  // cut off instead of the decode worker when given.
  static FaultRun CutTransfer(Cut how, const std::string& peer = "") {
    return Disturbed([=]() -> std::unique_ptr<Fault> {
      const int p = net_->Prefilling("sending"), d = net_->Decoding("landing");
      if (p < 0 || d < 0) return nullptr;
      return net_->CutLink(C::PrefillHost(p),
                           peer.empty() ? net_->decode_address(d) : peer, how);
    });
  }

  // Router and decode worker are parted while the latter decodes.
  static FaultRun CutDecode(Cut how) {
    return Disturbed([=]() -> std::unique_ptr<Fault> {
      const int d = net_->Decoding("running");
      if (d < 0) return nullptr;
      return net_->CutLink(C::kRouterHost, net_->decode_address(d), how);
    });
  }

  static std::unique_ptr<NetworkCluster> net_;
};

std::unique_ptr<NetworkCluster> NetworkTest::net_;

TEST_F(NetworkTest, TransferLinkGoesSilent) {
  EXPECT_EQ(RunFault(net_->cluster(), CutTransfer(Cut::kDrop)),
            absl::OkStatus());
}

TEST_F(NetworkTest, TransferLinkIsReset) {
  EXPECT_EQ(RunFault(net_->cluster(), CutTransfer(Cut::kReset)),
            absl::OkStatus());
}

TEST_F(NetworkTest, ControlCutToNobodyIsNoticed) {
  for (const Cut how : {Cut::kDrop, Cut::kReset}) {
    FaultRun run = CutTransfer(how, C::kNobody);
    run.tries = 2;
    EXPECT_THAT(std::string(RunFault(net_->cluster(), run).message()),
                HasSubstr("no effect"));
  }
}

TEST_F(NetworkTest, RouterAndDecodeWorkerPartedInDecode) {
  EXPECT_EQ(RunFault(net_->cluster(), CutDecode(Cut::kDrop)), absl::OkStatus());
}

TEST_F(NetworkTest, DecodeSessionIsReset) {
  EXPECT_EQ(RunFault(net_->cluster(), CutDecode(Cut::kReset)),
            absl::OkStatus());
}

TEST_F(NetworkTest, RouterAndPrefillWorkerPartedInPrefill) {
  const FaultRun run = Disturbed([]() -> std::unique_ptr<Fault> {
    const int p = net_->Prefilling("sending");
    if (p < 0) return nullptr;
    return net_->CutLink(C::kRouterHost, net_->prefill_address(p), Cut::kDrop);
  });
  EXPECT_EQ(RunFault(net_->cluster(), run), absl::OkStatus());
}

// A decode worker that hears nothing of its router any more, and not that the
// client is gone, gives back the blocks of a long answer while it is alone.
TEST_F(NetworkTest, PartedDecodeWorkerStopsByItself) {
  constexpr int kTokens = 6000;
  std::atomic<bool> leave = false;
  std::thread client([&] {
    RunRequest(net_->cluster().processes().stub(), FixedRequest(40, kTokens, 5),
               [&](const v1::GenerateEvent&) { return !leave; });
  });
  int victim = -1;
  const MonotonicTime give_up = MonotonicNow() + std::chrono::seconds(10);
  while ((victim = net_->Decoding("running")) < 0 && MonotonicNow() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::unique_ptr<Fault> cut;
  const auto decoded = [&] {
    return net_->decode(victim).Metric("baton_decode_tokens_total").value_or(0);
  };
  double decoded_before = 0;
  if (victim >= 0) {
    decoded_before = decoded();
    cut =
        net_->CutLink(C::kRouterHost, net_->decode_address(victim), Cut::kDrop);
    cut->Inject();
  }
  leave = true;
  client.join();
  ASSERT_GE(victim, 0) << "no answer began";
  const Process& worker = net_->decode(victim);
  const MonotonicTime deadline = MonotonicNow() + std::chrono::seconds(45);
  while (net_->cluster().Blocks(worker, "free") < C::kPoolBlocks &&
         MonotonicNow() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(net_->cluster().Blocks(worker, "free"), C::kPoolBlocks);
  EXPECT_LT(decoded() - decoded_before, kTokens) << "it went on to the end";
  EXPECT_EQ(cut->TookEffect(), absl::OkStatus());
  EXPECT_EQ(cut->Heal(), absl::OkStatus());
  EXPECT_EQ(net_->cluster().Recovered(), absl::OkStatus());
}

// What prefill workers send passes 10 Mbit/s and every twentieth packet is
// lost: slow, and right. The 13 blocks need about 4 s, twice the stall timeout;
// as they come, nobody gives the attempt up.
TEST_F(NetworkTest, TransferOverASlowAndLossyLink) {
  FaultRun run;
  run.request = FixedRequest(200, 8, 79);
  run.max_replays = 0;
  run.lengthen = false;
  MonotonicTime start;  // no block has left before
  run.begin = [&] { start = MonotonicNow(); };
  run.moment = [&]() -> std::unique_ptr<Fault> {
    const int p = net_->Prefilling("running"), d = net_->Decoding("landing");
    if (p < 0 || d < 0) return nullptr;
    return std::make_unique<LinkFault>(
        &net_->network(), C::PrefillHost(p), [=] {
          return net_->network().LosePackets(C::PrefillHost(p),
                                             net_->decode_address(d), 5);
        });
  };
  run.meanwhile = [&]() -> absl::Status {
    const double bits =
        8.0 * static_cast<double>(
                  net_->cluster().Calm(run.request).served.kv_bytes_moved());
    const double rate = bits / Seconds(MonotonicNow() - start);
    if (bits > 3e7 && rate < 11e6) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(bits, " bits at ", rate, " bit/s: not slow"));
  };
  ASSERT_EQ(net_->cluster().Calm(run.request).status, absl::OkStatus());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(net_->network().LimitRate(C::PrefillHost(i), 10),
              absl::OkStatus());
  }
  EXPECT_EQ(RunFault(net_->cluster(), run), absl::OkStatus());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(net_->network().LimitRate(C::PrefillHost(i), 0),
              absl::OkStatus());
  }
}

}  // namespace
}  // namespace baton::testing
