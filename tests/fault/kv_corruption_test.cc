// KV on its way from prefill to decode workers passes a proxy that flips a
// bit, falls silent in the middle of a block, or loses its connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/network_cluster.h"
#include "tests/support/tcp_proxy.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using C = NetworkCluster;

// Bytes that arrive together only in the middle of a block.
constexpr size_t kBulk = 8 << 10;
constexpr size_t kMoreThanAnyRead = 1 << 30;

class KvCorruptionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = NetworkCluster::Start([](VirtualNetwork& network) {
      for (int i = 0; i < 2; ++i) {
        auto proxy =
            TcpProxy::Start({.network = network.network(C::PrefillHost(i))});
        if (!proxy.ok()) return proxy.status();
        proxies_[i] = *std::move(proxy);
        if (absl::Status s = network.Redirect(C::PrefillHost(i), C::kAnybody,
                                              proxies_[i]->port());
            !s.ok()) {
          return s;
        }
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(started.ok()) << started.status();
    net_ = *std::move(started);
  }
  static void TearDownTestSuite() {
    if (net_ != nullptr) {
      EXPECT_EQ(net_->cluster().processes().Drain(), absl::OkStatus());
    }
    net_.reset();
    for (auto& proxy : proxies_) proxy.reset();
  }
  void SetUp() override { ASSERT_NE(net_, nullptr); }

  using Act = void (TcpProxy::*)(TcpProxy::Direction, size_t);

  static absl::Status Run(Act act, size_t min_read = kBulk) {
    FaultRun run;
    run.request = FixedRequest(500, 20, 80);
    run.moment = [=]() -> std::unique_ptr<Fault> {
      const int p = net_->Prefilling("running");
      if (p < 0 || net_->Decoding("landing") < 0) return nullptr;
      TcpProxy* const proxy = proxies_[p].get();
      return std::make_unique<ProxyFault>(
          proxy, [=] { (proxy->*act)(TcpProxy::kToServer, min_read); });
    };
    run.min_replays = 1;
    return RunFault(net_->cluster(), run);
  }

  static std::unique_ptr<TcpProxy> proxies_[2];
  static std::unique_ptr<NetworkCluster> net_;
};

std::unique_ptr<TcpProxy> KvCorruptionTest::proxies_[2];
std::unique_ptr<NetworkCluster> KvCorruptionTest::net_;

TEST_F(KvCorruptionTest, BitFlippedInABlock) {
  EXPECT_EQ(Run(&TcpProxy::Flip), absl::OkStatus());
}

TEST_F(KvCorruptionTest, SilenceInTheMiddleOfABlock) {
  EXPECT_EQ(Run(&TcpProxy::Stall), absl::OkStatus());
}

TEST_F(KvCorruptionTest, ConnectionResetInTheMiddleOfABlock) {
  EXPECT_EQ(Run(&TcpProxy::Reset), absl::OkStatus());
}

TEST_F(KvCorruptionTest, ConnectionEndsInTheMiddleOfABlock) {
  EXPECT_EQ(Run(&TcpProxy::End), absl::OkStatus());
}

TEST_F(KvCorruptionTest, ControlFlipThatNeverComesIsNoticed) {
  EXPECT_THAT(std::string(Run(&TcpProxy::Flip, kMoreThanAnyRead).message()),
              HasSubstr("no effect"));
}

}  // namespace
}  // namespace baton::testing
