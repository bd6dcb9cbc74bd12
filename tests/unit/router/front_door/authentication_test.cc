#include "router/front_door/authentication.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "common/rpc/status.h"
#include "router/front_door/open_requests.h"
#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;

class AuthenticationTest : public ::testing::Test {
 protected:
  AuthenticationTest() {
    const std::string path = ::testing::TempDir() + "/authentication_test";
    std::ofstream(path) << acme_.line << "\n" << other_.line << "\n";
    file_ = *ApiTokenFile::Open(path);
    std::remove(path.c_str());
  }

  const NewApiToken acme_ = *MakeApiToken("acme");
  const NewApiToken other_ = *MakeApiToken("other");
  std::unique_ptr<ApiTokenFile> file_;
};

TEST_F(AuthenticationTest, TenantComesFromTheCredential) {
  const Authenticator authenticator(file_.get());
  const std::string acme = "Bearer " + acme_.token;
  const std::string other = "Bearer " + other_.token;
  EXPECT_EQ(*authenticator.TenantOf({{"authorization", acme}}), "acme");
  EXPECT_EQ(*authenticator.TenantOf({{"authorization", other}}), "other");
  EXPECT_EQ(*authenticator.TenantOf(
                {{"authorization", acme}, {"x-baton-tenant", "acme"}}),
            "acme");
}

TEST_F(AuthenticationTest, MissingAndWrongCredentialsLookTheSame) {
  const Authenticator authenticator(file_.get());
  const std::string good = "Bearer " + acme_.token;
  const std::string wrong = "Bearer baton-nonsense";
  const std::string scheme = "Basic " + acme_.token;
  const std::string hash = "Bearer " + acme_.line.substr(5);
  const absl::Status missing = authenticator.TenantOf({}).status();
  EXPECT_EQ(missing, absl::UnauthenticatedError(
                         "authorization: not a known API token (allowed: "
                         "Bearer TOKEN)"));
  for (const ClientMetadata& metadata : std::initializer_list<ClientMetadata>{
           {{"authorization", wrong}},
           {{"authorization", scheme}},
           {{"authorization", hash}},
           {{"authorization", good}, {"authorization", good}},
           {{"authorization", wrong}, {"x-baton-tenant", "acme"}},
           {{"x-authorization", good}}}) {
    EXPECT_EQ(authenticator.TenantOf(metadata).status(), missing);
  }
}

TEST_F(AuthenticationTest, AnotherTenantMayNotBeNamed) {
  const Authenticator authenticator(file_.get());
  const std::string acme = "Bearer " + acme_.token;
  for (const char* name : {"other", "", "ACME", "nobody"}) {
    EXPECT_EQ(authenticator
                  .TenantOf({{"authorization", acme}, {"x-baton-tenant", name}})
                  .status(),
              absl::PermissionDeniedError(
                  "x-baton-tenant: not the tenant of the credential"));
  }
  const Authenticator open(nullptr);
  EXPECT_EQ(*open.TenantOf({{"authorization", "Bearer whatever"}}), "");
  EXPECT_EQ(open.TenantOf({{"x-baton-tenant", "acme"}}).status(),
            absl::PermissionDeniedError(
                "x-baton-tenant: this router knows no tenants; it runs "
                "without API tokens"));
}

TEST_F(AuthenticationTest, WorkerHeadersAreCounted) {
  EXPECT_EQ(WorkerHeaders({}), 0);
  EXPECT_EQ(WorkerHeaders({{"x-baton-worker", "d1"},
                           {"x-prefiller-host-port", "10.0.0.1:1"},
                           {"x-request-id", "r"}}),
            2);
}

// Every method, over real gRPC.
TEST_F(AuthenticationTest, EveryMethodWantsACredential) {
  ToyCluster cluster({.api_tokens = file_.get()});
  const auto call_all = [&](const std::string& header) {
    std::vector<absl::Status> statuses;
    const auto call = [&](auto method) {
      grpc::ClientContext context;
      if (!header.empty()) context.AddMetadata("authorization", header);
      context.AddMetadata("x-baton-decode-worker", "evil");
      statuses.push_back(FromGrpcStatus(method(&context)));
    };
    auto& stub = cluster.stub();
    call([&](auto* context) {
      v1::GenerateRequest request;
      request.set_text("hi");
      const auto reader = stub.Generate(context, request);
      v1::GenerateEvent event;
      while (reader->Read(&event)) {
      }
      return reader->Finish();
    });
    call([&](auto* context) {
      v1::TokenizeRequest request;
      request.set_text("hi");
      v1::TokenizeResponse response;
      return stub.Tokenize(context, request, &response);
    });
    call([&](auto* context) {
      v1::DetokenizeResponse response;
      return stub.Detokenize(context, {}, &response);
    });
    call([&](auto* context) {
      v1::ListModelsResponse response;
      return stub.ListModels(context, {}, &response);
    });
    call([&](auto* context) {
      v1::GetClusterInfoResponse response;
      return stub.GetClusterInfo(context, {}, &response);
    });
    return statuses;
  };
  for (const absl::Status& status : call_all("Bearer " + acme_.token)) {
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const std::string header : {"", "Bearer wrong"}) {
    for (const absl::Status& status : call_all(header)) {
      EXPECT_EQ(status, absl::UnauthenticatedError(
                            "authorization: not a known API token (allowed: "
                            "Bearer TOKEN)"));
    }
  }
  EXPECT_NE(cluster.MetricsText().find("baton_authentication_failures_total{"
                                       "model=\"toy\",role=\"router\"} 10"),
            std::string::npos)
      << cluster.MetricsText();
  EXPECT_NE(
      cluster.MetricsText().find(
          "baton_ignored_headers_total{model=\"toy\",role=\"router\"} 15"),
      std::string::npos);
}

TEST_F(AuthenticationTest, OneClientCannotOpenEverything) {
  ToyCluster cluster({.api_tokens = file_.get(), .max_requests_per_client = 2});
  cluster.HoldDecode();
  v1::GenerateRequest request;
  request.set_text("hi");
  const auto open = [&](grpc::ClientContext* context, const NewApiToken& as) {
    context->AddMetadata("authorization", "Bearer " + as.token);
    return cluster.stub().Generate(context, request);
  };
  grpc::ClientContext contexts[4];
  v1::GenerateEvent event;
  const auto first = open(&contexts[0], acme_);
  const auto second = open(&contexts[1], acme_);
  ASSERT_TRUE(first->Read(&event));
  ASSERT_TRUE(second->Read(&event));
  const auto third = open(&contexts[2], acme_);
  EXPECT_FALSE(third->Read(&event));
  const absl::Status refused = FromGrpcStatus(third->Finish());
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "requests: this client has too many open (allowed 2)");
  EXPECT_EQ(RetryDelay(refused), std::chrono::seconds(1));
  const auto other = open(&contexts[3], other_);
  EXPECT_TRUE(other->Read(&event)) << "another tenant has its own places";
  contexts[0].TryCancel();
  EXPECT_TRUE(Eventually([&] {
    grpc::ClientContext again;
    const auto retry = open(&again, acme_);
    v1::GenerateEvent answer;
    const bool served = retry->Read(&answer);
    again.TryCancel();
    retry->Finish();
    return served;
  })) << "a place that was left is free";
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  first->Finish();
  second->Finish();
  other->Finish();
}

TEST(OpenRequestsTest, KeepsNothingOfClientsThatLeft) {
  OpenRequests requests(1);
  {
    const auto slot = requests.Open("a");
    ASSERT_TRUE(slot.ok());
    EXPECT_FALSE(requests.Open("a").ok());
    EXPECT_TRUE(requests.Open("b").ok());
    EXPECT_EQ(requests.clients(), 1u);
  }
  EXPECT_EQ(requests.clients(), 0u);
  EXPECT_TRUE(requests.Open("a").ok());
}

TEST(OpenRequestsTest, PeersOfOneHost) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.1:4711"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::1%5D:4711"), "ipv6:%5B::1%5D");
  EXPECT_EQ(HostOfPeer("unix:/tmp/a:b"), "unix:/tmp/a:b");
}

}  // namespace
}  // namespace baton::router
