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

struct Ucx {
  static constexpr char kName[] = "ucx";
};
struct Grpc {
  static constexpr char kName[] = "grpc";
};

template <class Transport>
class KvCorruptionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = NetworkCluster::Start(Prepare, Transport::kName);
    ASSERT_TRUE(started.ok()) << started.status();
    net_ = *std::move(started);
  }
  static absl::Status Prepare(VirtualNetwork& network) {
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
    if (min_read == kMoreThanAnyRead) run.tries = 2;
    const std::string& used =
        net_->cluster().Calm(run.request).served.transport();
    if (used != Transport::kName) return absl::InternalError(used);
    return RunFault(net_->cluster(), run);
  }

  static std::unique_ptr<TcpProxy> proxies_[2];
  static std::unique_ptr<NetworkCluster> net_;
};

template <class Transport>
std::unique_ptr<TcpProxy> KvCorruptionTest<Transport>::proxies_[2];
template <class Transport>
std::unique_ptr<NetworkCluster> KvCorruptionTest<Transport>::net_;

using Transports = ::testing::Types<Ucx, Grpc>;
TYPED_TEST_SUITE(KvCorruptionTest, Transports);

TYPED_TEST(KvCorruptionTest, BitFlippedInABlock) {
  EXPECT_EQ(this->Run(&TcpProxy::Flip), absl::OkStatus());
}

TYPED_TEST(KvCorruptionTest, SilenceInTheMiddleOfABlock) {
  EXPECT_EQ(this->Run(&TcpProxy::Stall), absl::OkStatus());
}

TYPED_TEST(KvCorruptionTest, ConnectionResetInTheMiddleOfABlock) {
  EXPECT_EQ(this->Run(&TcpProxy::Reset), absl::OkStatus());
}

TYPED_TEST(KvCorruptionTest, ConnectionEndsInTheMiddleOfABlock) {
  EXPECT_EQ(this->Run(&TcpProxy::End), absl::OkStatus());
}

TYPED_TEST(KvCorruptionTest, ControlFlipThatNeverComesIsNoticed) {
  EXPECT_THAT(
      std::string(this->Run(&TcpProxy::Flip, kMoreThanAnyRead).message()),
      HasSubstr("no effect"));
}

}  // namespace
}  // namespace baton::testing
