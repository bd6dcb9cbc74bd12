// What routers and workers, clients and routers say to each other passes
// proxies that reset, end, stall and corrupt it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "tests/fault/fault_run.h"
#include "tests/fault/network_fault.h"
#include "tests/support/certificates.h"
#include "tests/support/tcp_proxy.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { StartCluster(""); }
  static void StartCluster(const std::string& tls_dir) {
    auto model = SmolLm2Path();
    ASSERT_TRUE(model.ok()) << model.status();
    ClusterOptions options;
    options.tls_dir = tls_dir;
    options.model = *model;
    options.prefill = options.decode = 2;
    options.worker_flags = {"--threads=1", "--kv-blocks=400",
                            "--max-context=6400", "--step-tokens=32"};
    options.decode_flags = {"--disaggregation=always"};
    options.router_flags = {"--stall-timeout=2s", "--silence-timeout=3s"};
    options.address_of = [](const Process& worker) {
      auto proxy = TcpProxy::Start({.upstream = worker.address()});
      if (!proxy.ok()) return worker.address();
      return (proxies_[worker.name()] = *std::move(proxy))->address();
    };
    auto cluster = FaultedCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    auto front =
        TcpProxy::Start({.upstream = cluster_->processes().router().address()});
    ASSERT_TRUE(front.ok()) << front.status();
    front_ = *std::move(front);
  }
  static void TearDownTestSuite() {
    if (cluster_ != nullptr) {
      EXPECT_EQ(cluster_->processes().Drain(), absl::OkStatus());
    }
    cluster_.reset();
    stub_.reset();
    front_.reset();
    proxies_.clear();
  }
  void SetUp() override { ASSERT_EQ(proxies_.size(), 4u); }

  using Act = void (TcpProxy::*)(TcpProxy::Direction, size_t);
  static constexpr size_t kAnyRead = 1;
  static constexpr size_t kMoreThanAnyRead = 1 << 30;

  // While the request runs on some worker of this kind, once.
  static FaultRun OnSession(bool prefill, const std::string& state, Act act,
                            size_t min_read = kAnyRead) {
    FaultRun run;
    run.request = FixedRequest(400, 60, 81);
    run.moment = [=]() -> std::unique_ptr<Fault> {
      for (int i = 0; i < 2; ++i) {
        const Process& worker = prefill ? cluster_->processes().prefill(i)
                                        : cluster_->processes().decode(i);
        if (cluster_->Blocks(worker, state) == 0) continue;
        TcpProxy* const proxy = proxies_[worker.name()].get();
        return std::make_unique<ProxyFault>(
            proxy, [=] { (proxy->*act)(TcpProxy::kToClient, min_read); });
      }
      return nullptr;
    };
    run.min_replays = 1;
    return run;
  }

  // Between the client and the router while the answer streams.
  static FaultRun OnClient(Act act) {
    FaultRun run;
    run.request = FixedRequest(100, 100, 82);
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Generation::NewStub(grpc::CreateCustomChannel(
        front_->address(), grpc::InsecureChannelCredentials(), own_connection));
    run.stub = stub_.get();
    run.moment = [=]() -> std::unique_ptr<Fault> {
      if (cluster_->Blocks(cluster_->processes().decode(0), "running") +
              cluster_->Blocks(cluster_->processes().decode(1), "running") ==
          0) {
        return nullptr;
      }
      return std::make_unique<ProxyFault>(front_.get(), [=] {
        (front_.get()->*act)(TcpProxy::kToClient, kAnyRead);
      });
    };
    run.may_end = {absl::StatusCode::kUnavailable};
    run.min_replays = 1;  // so it may not end well
    return run;
  }

  static std::map<std::string, std::unique_ptr<TcpProxy>> proxies_;
  static std::unique_ptr<FaultedCluster> cluster_;
  static std::unique_ptr<TcpProxy> front_;
  static std::unique_ptr<v1::Generation::Stub> stub_;
};

std::map<std::string, std::unique_ptr<TcpProxy>> SessionTest::proxies_;
std::unique_ptr<FaultedCluster> SessionTest::cluster_;
std::unique_ptr<TcpProxy> SessionTest::front_;
std::unique_ptr<v1::Generation::Stub> SessionTest::stub_;

TEST_F(SessionTest, DecodeSessionResetInDecode) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(false, "running", &TcpProxy::Reset)),
            absl::OkStatus());
}

TEST_F(SessionTest, DecodeSessionEndsInDecode) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(false, "running", &TcpProxy::End)),
            absl::OkStatus());
}

TEST_F(SessionTest, DecodeSessionStallsInDecode) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(false, "running", &TcpProxy::Stall)),
            absl::OkStatus());
}

TEST_F(SessionTest, PrefillSessionResetInTransfer) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(true, "sending", &TcpProxy::Reset)),
            absl::OkStatus());
}

// Plain text has no check of its own: what was hit may be a token. But nobody
// dies, and the request ends.
TEST_F(SessionTest, BitsFlippedInPlainSessionsKillNobody) {
  for (int i = 0; i < 4; ++i) {
    FaultRun run = OnSession(i % 2 == 0, i % 2 == 0 ? "sending" : "running",
                             &TcpProxy::Flip);
    run.any_answer = true;
    run.min_replays = 0;
    run.may_end = {absl::StatusCode::kUnavailable, absl::StatusCode::kInternal,
                   absl::StatusCode::kDataLoss};
    EXPECT_EQ(RunFault(*cluster_, run), absl::OkStatus()) << i;
  }
}

TEST_F(SessionTest, ControlFlipThatNeverComesIsNoticed) {
  FaultRun run = OnSession(false, "running", &TcpProxy::Flip, kMoreThanAnyRead);
  run.tries = 2;
  EXPECT_THAT(std::string(RunFault(*cluster_, run).message()),
              HasSubstr("no effect"));
}

// With TLS a flipped bit ends the session, and the answer is the right one.
class TlsSessionTest : public SessionTest {
 protected:
  static void SetUpTestSuite() {
    certificates_ = std::make_unique<Certificates>();
    StartCluster(certificates_->dir());
  }
  static void TearDownTestSuite() {
    SessionTest::TearDownTestSuite();
    certificates_.reset();
  }
  static std::unique_ptr<Certificates> certificates_;
};

std::unique_ptr<Certificates> TlsSessionTest::certificates_;

TEST_F(TlsSessionTest, BitFlippedInADecodeSession) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(false, "running", &TcpProxy::Flip)),
            absl::OkStatus());
}

TEST_F(TlsSessionTest, BitFlippedInAPrefillSession) {
  EXPECT_EQ(RunFault(*cluster_, OnSession(true, "sending", &TcpProxy::Flip)),
            absl::OkStatus());
}

// The client is told UNAVAILABLE, never a silent end; nothing goes on for it.
TEST_F(SessionTest, ClientConnectionEndsInMidAnswer) {
  EXPECT_EQ(RunFault(*cluster_, OnClient(&TcpProxy::End)), absl::OkStatus());
}

TEST_F(SessionTest, ClientConnectionResetInMidAnswer) {
  EXPECT_EQ(RunFault(*cluster_, OnClient(&TcpProxy::Reset)), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing
