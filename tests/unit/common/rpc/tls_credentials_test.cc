#include "common/rpc/tls_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/rpc/channel.h"
#include "common/rpc/rpc_server.h"
#include "proto/generation.grpc.pb.h"
#include "tests/support/certificates.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Only has to be reached.
class FakeGeneration final : public v1::Generation::CallbackService {
 public:
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest*,
                                       v1::DetokenizeResponse*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

std::shared_ptr<const TlsCredentials> Load(const CertificateFiles& files,
                                           std::optional<PeerRole> role) {
  auto loaded = TlsCredentials::Load(files, role);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : nullptr;
}

class TlsCredentialsTest : public ::testing::Test {
 protected:
  TlsCredentialsTest()
      : tls_(Load(certificates_.Of(PeerRole::kDecode), PeerRole::kDecode)) {}

  void Serve(std::vector<PeerRole> admitted) {
    auto server = RpcServer::Start({.address = "127.0.0.1:0",
                                    .tls = tls_,
                                    .admitted = std::move(admitted)},
                                   {&service_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  grpc::Status Call(ChannelOptions options) const {
    options.own_connection = true;
    const auto stub = v1::Generation::NewStub(
        MakeChannel(server_->address(), std::move(options)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    v1::DetokenizeResponse response;
    return stub->Detokenize(&context, {}, &response);
  }
  // As a process with these files that expects the server to be a decode
  // worker.
  grpc::Status CallWith(const CertificateFiles& files) const {
    return Call(
        {.tls = Load(files, std::nullopt), .peer_roles = {PeerRole::kDecode}});
  }
  std::string Published() const {
    Metrics metrics("test", "");
    tls_->Publish(&metrics);
    return metrics.Render();
  }

  const testing::Certificates certificates_;
  FakeGeneration service_;
  const std::shared_ptr<const TlsCredentials> tls_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(TlsCredentialsTest, AdmittedRolesAreServed) {
  Serve({PeerRole::kRouter, PeerRole::kPrefill});
  EXPECT_TRUE(CallWith(certificates_.Of(PeerRole::kRouter)).ok());
  EXPECT_TRUE(CallWith(certificates_.Of(PeerRole::kPrefill)).ok());
  EXPECT_THAT(Published(),
              HasSubstr("baton_tls_peers_refused_total{role=\"test\"} 0"));
}

TEST_F(TlsCredentialsTest, OtherRolesAreDenied) {
  Serve({PeerRole::kRouter});
  const grpc::Status status = CallWith(certificates_.Of(PeerRole::kClient));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(),
            "peer: the certificate's role is client, allowed router");
  EXPECT_THAT(Published(),
              HasSubstr("baton_tls_peers_refused_total{role=\"test\"} 1"));
}

TEST_F(TlsCredentialsTest, NobodyWithoutCertificateOfTheCa) {
  Serve({PeerRole::kRouter});
  const testing::Certificates foreign;
  EXPECT_EQ(CallWith({.ca = certificates_.File("ca.crt")}).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  CertificateFiles files = foreign.Of(PeerRole::kRouter);
  files.ca = certificates_.File("ca.crt");
  EXPECT_EQ(CallWith(files).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call({}).error_code(), grpc::StatusCode::UNAVAILABLE);
  // A client that is fooled by a server of another CA.
  EXPECT_EQ(CallWith(foreign.Of(PeerRole::kRouter)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsCredentialsTest, ServerOfAnotherRoleIsLeft) {
  Serve({PeerRole::kRouter});
  const auto router = Load(certificates_.Of(PeerRole::kRouter), {});
  const grpc::Status status =
      Call({.tls = router, .peer_roles = {PeerRole::kPrefill}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("role is decode, expected"));
}

TEST_F(TlsCredentialsTest, HostsAreKnownByTheirName) {
  Serve({});
  const auto client = Load({.ca = certificates_.File("ca.crt")}, std::nullopt);
  EXPECT_TRUE(Call({.tls = client}).ok());
  EXPECT_TRUE(Call({.tls = client, .server_name = "localhost"}).ok());
  EXPECT_EQ(
      Call({.tls = client, .server_name = "elsewhere.example"}).error_code(),
      grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsCredentialsTest, NewFilesAreUsedByNewConnections) {
  Serve({PeerRole::kRouter});
  const CertificateFiles files = certificates_.Of(PeerRole::kRouter);
  const auto before = Load(files, PeerRole::kRouter);
  ASSERT_TRUE(CallWith(files).ok());
  // From now on only what the new CA has signed is good.
  std::remove(certificates_.File("ca.key").c_str());
  certificates_.Renew();
  const MonotonicTime give_up = MonotonicNow() + seconds(60);
  while (!CallWith(files).ok() && MonotonicNow() < give_up) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(CallWith(files).ok());
  // The object made before has followed.
  EXPECT_TRUE(Call({.tls = before, .peer_roles = {PeerRole::kDecode}}).ok());
}

TEST_F(TlsCredentialsTest, TellsWhenTheCertificateExpires) {
  EXPECT_THAT(
      Published(),
      ::testing::ContainsRegex(
          "baton_tls_certificate_expiry_seconds.role=\"test\". 77[0-9]{5}"));
}

TEST_F(TlsCredentialsTest, FilesThatDoNotFitAreNotLoaded) {
  EXPECT_EQ(TlsCredentials::Load(certificates_.Of(PeerRole::kClient),
                                 PeerRole::kRouter)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
