// Links between the processes are cut, slow, lossy or corrupt: each process is
// a host of a virtual network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/network_fault.h"
#include "tests/support/virtual_network.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using Cut = VirtualNetwork::Cut;

constexpr int kRouterHost = 0;
constexpr char kNobody[] = "10.77.0.200";

// One router, two workers of each kind, each on a host of its own.
class NetworkTest : public ::testing::Test {
 protected:
  static int PrefillHost(int i) { return 1 + i; }
  static int DecodeHost(int i) { return 3 + i; }

  static void SetUpTestSuite() {
    auto model = SmolLm2Path();
    ASSERT_TRUE(model.ok()) << model.status();
    auto network = VirtualNetwork::Create(5);
    ASSERT_TRUE(network.ok()) << network.status();
    network_ = *std::move(network);
    ClusterOptions options;
    options.model = *model;
    options.prefill = options.decode = 2;
    options.worker_flags = {"--threads=1", "--kv-blocks=400",
                            "--step-tokens=32"};
    options.decode_flags = {"--disaggregation=always"};
    options.router_flags = {"--stall-timeout=2s", "--silence-timeout=3s"};
    options.places["router-0"] = At(kRouterHost, {});
    for (int i = 0; i < 2; ++i) {
      options.places[absl::StrCat("prefill-", i)] =
          At(PrefillHost(i), {"--trusted-network"});
      options.places[absl::StrCat("decode-", i)] =
          At(DecodeHost(i), {"--trusted-network"});
    }
    auto cluster = FaultedCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  static void TearDownTestSuite() {
    if (cluster_ != nullptr) {
      EXPECT_EQ(cluster_->processes().Drain(), absl::OkStatus());
    }
    cluster_.reset();
    network_.reset();
  }
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }

  static Place At(int host, std::vector<std::string> flags) {
    Place place;
    place.host = network_->address(host);
    place.network = network_->network(host);
    place.flags = std::move(flags);
    place.flags.push_back("--insecure");
    return place;
  }

  static v1::GenerateRequest Request() { return FixedRequest(500, 60, 78); }

  // The index of the worker that has blocks in this state, or -1.
  static int Prefilling(const std::string& state) {
    for (int i = 0; i < 2; ++i) {
      if (cluster_->Blocks(cluster_->processes().prefill(i), state) > 0) {
        return i;
      }
    }
    return -1;
  }
  static int Decoding(const std::string& state) {
    for (int i = 0; i < 2; ++i) {
      if (cluster_->Blocks(cluster_->processes().decode(i), state) > 0) {
        return i;
      }
    }
    return -1;
  }

  static std::unique_ptr<Fault> CutLink(int host, const std::string& peer,
                                        Cut how) {
    return std::make_unique<LinkFault>(network_.get(), host, [=] {
      return network_->CutLink(host, peer, how);
    });
  }

  // The link between the workers of a transfer is cut in its middle; `peer` is
  // cut off instead of the decode worker when given.
  static FaultRun CutTransfer(Cut how, const std::string& peer = "") {
    FaultRun run;
    run.request = Request();
    run.moment = [=]() -> std::unique_ptr<Fault> {
      const int p = Prefilling("sending"), d = Decoding("landing");
      if (p < 0 || d < 0) return nullptr;
      return CutLink(PrefillHost(p),
                     peer.empty() ? network_->address(DecodeHost(d)) : peer,
                     how);
    };
    run.min_replays = 1;
    return run;
  }

  static std::unique_ptr<VirtualNetwork> network_;
  static std::unique_ptr<FaultedCluster> cluster_;
};

std::unique_ptr<VirtualNetwork> NetworkTest::network_;
std::unique_ptr<FaultedCluster> NetworkTest::cluster_;

TEST_F(NetworkTest, TransferLinkGoesSilent) {
  EXPECT_EQ(RunFault(*cluster_, CutTransfer(Cut::kDrop)), absl::OkStatus());
}

TEST_F(NetworkTest, TransferLinkIsReset) {
  EXPECT_EQ(RunFault(*cluster_, CutTransfer(Cut::kReset)), absl::OkStatus());
}

TEST_F(NetworkTest, ControlCutToNobodyIsNoticed) {
  for (const Cut how : {Cut::kDrop, Cut::kReset}) {
    EXPECT_THAT(
        std::string(RunFault(*cluster_, CutTransfer(how, kNobody)).message()),
        HasSubstr("no effect"));
  }
}

// The router cannot reach the decode worker of a running answer, nor that the
// router: the answer goes on elsewhere, and the cut-off worker gives back the
// blocks by itself while it is still alone.
TEST_F(NetworkTest, RouterAndDecodeWorkerPartedInDecode) {
  int victim = -1;
  FaultRun run;
  run.request = Request();
  run.moment = [&]() -> std::unique_ptr<Fault> {
    victim = Decoding("running");
    if (victim < 0) return nullptr;
    return CutLink(kRouterHost, network_->address(DecodeHost(victim)),
                   Cut::kDrop);
  };
  run.min_replays = 1;
  run.meanwhile = [&]() -> absl::Status {
    const MonotonicTime deadline = MonotonicNow() + std::chrono::seconds(30);
    const Process& worker = cluster_->processes().decode(victim);
    while (cluster_->Blocks(worker, "free") < 400) {
      if (MonotonicNow() > deadline) {
        return absl::DeadlineExceededError("the worker keeps its blocks");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(RunFault(*cluster_, run), absl::OkStatus());
}

TEST_F(NetworkTest, RouterAndPrefillWorkerPartedInPrefill) {
  FaultRun run;
  run.request = Request();
  run.moment = []() -> std::unique_ptr<Fault> {
    const int p = Prefilling("sending");
    if (p < 0) return nullptr;
    return CutLink(kRouterHost, network_->address(PrefillHost(p)), Cut::kDrop);
  };
  run.min_replays = 1;
  EXPECT_EQ(RunFault(*cluster_, run), absl::OkStatus());
}

TEST_F(NetworkTest, SessionsAreResetInDecode) {
  FaultRun run;
  run.request = Request();
  run.moment = []() -> std::unique_ptr<Fault> {
    const int d = Decoding("running");
    if (d < 0) return nullptr;
    return CutLink(kRouterHost, network_->address(DecodeHost(d)), Cut::kReset);
  };
  run.min_replays = 1;
  EXPECT_EQ(RunFault(*cluster_, run), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (absl::Status s = baton::testing::VirtualNetwork::Enter(); !s.ok()) {
    std::fprintf(stderr, "network_test: %s\n", s.ToString().c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
