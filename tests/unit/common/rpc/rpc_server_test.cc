#include "common/rpc/rpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/base/strings.h"
#include "common/rpc/channel.h"
#include "common/rpc/reflection.h"
#include "common/rpc/status.h"
#include "proto/generation.grpc.pb.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class FakeGeneration final : public v1::Generation::CallbackService {
 public:
  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const v1::DetokenizeRequest* request,
      v1::DetokenizeResponse* response) override {
    auto* reactor = context->DefaultReactor();
    if (request->token_ids().empty()) {
      reactor->Finish(ToGrpcStatus(InvalidField("token_ids", "empty")));
    } else {
      response->set_text(StrCat(request->token_ids_size()));
      reactor->Finish(grpc::Status::OK);
    }
    return reactor;
  }

  // Never ends by itself.
  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext*, const v1::GenerateRequest*) override {
    class Reactor : public grpc::ServerWriteReactor<v1::GenerateEvent> {
     public:
      explicit Reactor(std::promise<void>* started) {
        started->set_value();
        StartSendInitialMetadata();
      }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    return new Reactor(&generating);
  }

  std::promise<void> generating;
};

// Speaks grpc.health.v1 without its generated code: field 1 of both messages.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& service) {
  std::string body;
  if (!service.empty()) {
    body = {'\x0a', static_cast<char>(service.size())};
    body += service;
  }
  grpc::Slice slice(body);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel).UnaryCall(
      &context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request,
      &response, [&](grpc::Status status) { done.set_value(status); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) return -status.error_code();
  grpc::Slice flat;
  EXPECT_TRUE(response.DumpToSingleSlice(&flat).ok());
  return flat.size() == 2 ? flat.begin()[1] : 0;
}

constexpr int kServing = 1;
constexpr int kNotServing = 2;

class RpcServerTest : public testing::Test {
 protected:
  RpcServerTest() {
    auto server = RpcServer::Start({.address = "127.0.0.1:0"}, {&service_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = MakeChannel(server_->address(), {.own_connection = true});
    stub_ = v1::Generation::NewStub(channel_);
  }

  FakeGeneration service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

TEST_F(RpcServerTest, ServesOnAnyFreePort) {
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  v1::DetokenizeRequest request;
  request.add_token_ids(1);
  v1::DetokenizeResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(stub_->Detokenize(&context, request, &response).ok());
  EXPECT_EQ(response.text(), "1");
}

TEST_F(RpcServerTest, ErrorDetailsReachTheClient) {
  v1::DetokenizeResponse response;
  grpc::ClientContext context;
  const absl::Status status =
      FromGrpcStatus(stub_->Detokenize(&context, {}, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolations(status).at(0).field, "token_ids");
}

TEST_F(RpcServerTest, HealthFollowsSetServing) {
  EXPECT_EQ(HealthOf(channel_, ""), kNotServing);
  server_->SetServing("", true);
  server_->SetServing("baton.v1.Generation", true);
  EXPECT_EQ(HealthOf(channel_, ""), kServing);
  EXPECT_EQ(HealthOf(channel_, "baton.v1.Generation"), kServing);
  server_->SetServing("baton.v1.Generation", false);
  EXPECT_EQ(HealthOf(channel_, "baton.v1.Generation"), kNotServing);
  EXPECT_EQ(HealthOf(channel_, "no.such.Service"),
            -static_cast<int>(grpc::StatusCode::NOT_FOUND));
}

TEST_F(RpcServerTest, SecondServerOnThePortSaysWhy) {
  const auto second = RpcServer::Start({.address = server_->address()}, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            StrCat(server_->address(),
                   ": cannot listen: Address already in use (errno 98)"));
}

TEST_F(RpcServerTest, ShutdownCancelsWhatOutlivesTheGrace) {
  grpc::ClientContext context;
  auto stream = stub_->Generate(&context, v1::GenerateRequest());
  service_.generating.get_future().wait();
  server_->Shutdown(milliseconds(10));
  v1::GenerateEvent event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_FALSE(stream->Finish().ok());
  server_->Shutdown(milliseconds(10));
}

TEST_F(RpcServerTest, OversizedMessagesAreRefused) {
  FakeGeneration service;
  auto small = RpcServer::Start(
      {.address = "127.0.0.1:0", .max_message_bytes = 100}, {&service});
  ASSERT_TRUE(small.ok());
  auto stub = v1::Generation::NewStub(MakeChannel((*small)->address()));
  v1::DetokenizeRequest request;
  for (int i = 0; i < 1000; ++i) request.add_token_ids(i);
  v1::DetokenizeResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub->Detokenize(&context, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RpcServerTest, CompressedMessagesAreRefusedAndNotInflated) {
  v1::TokenizeRequest request;
  request.set_text(std::string(1 << 20, 'a'));
  v1::TokenizeResponse response;
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status status = stub_->Tokenize(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(),
            "Compression algorithm 'gzip' is disabled.");
}

TEST_F(RpcServerTest, ReflectionOnlyInBuildsForIt) {
  const grpc::Slice empty;
  grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel_).UnaryCall(
      &context,
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      grpc::StubOptions(), &request, &response,
      [&](grpc::Status status) { done.set_value(status); });
  const grpc::StatusCode code = done.get_future().get().error_code();
  EXPECT_EQ(code == grpc::StatusCode::UNIMPLEMENTED, !ReflectionServed());
  const auto asked = RpcServer::Start(
      {.address = "127.0.0.1:0", .reflection = true}, {&service_});
  EXPECT_EQ(absl::IsFailedPrecondition(asked.status()), !ReflectionServed());
}

TEST_F(RpcServerTest, LargeMetadataIsRefused) {
  v1::DetokenizeRequest request;
  request.add_token_ids(1);
  const auto call = [&](size_t bytes) {
    grpc::ClientContext context;
    context.AddMetadata("x-large", std::string(bytes, 'x'));
    v1::DetokenizeResponse response;
    // The refused call costs its connection.
    return v1::Generation::NewStub(
               MakeChannel(server_->address(), {.own_connection = true}))
        ->Detokenize(&context, request, &response)
        .error_code();
  };
  EXPECT_EQ(call(8 << 10), grpc::StatusCode::OK);
  EXPECT_EQ(call(64 << 10), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(call(8 << 10), grpc::StatusCode::OK);
}

TEST(RpcServerLimitsTest, CallsBeyondTheStreamsOfAConnectionWait) {
  FakeGeneration service;
  const auto server = RpcServer::Start(
      {.address = "127.0.0.1:0", .max_concurrent_streams = 1}, {&service});
  ASSERT_TRUE(server.ok());
  const auto stub = v1::Generation::NewStub(
      MakeChannel((*server)->address(), {.own_connection = true}));
  grpc::ClientContext first;
  const auto stream = stub->Generate(&first, v1::GenerateRequest());
  service.generating.get_future().wait();
  v1::DetokenizeRequest request;
  request.add_token_ids(1);
  v1::DetokenizeResponse response;
  {
    grpc::ClientContext second;
    second.set_deadline(std::chrono::system_clock::now() + milliseconds(100));
    EXPECT_EQ(stub->Detokenize(&second, request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  first.TryCancel();
  stream->Finish();
  grpc::ClientContext third;
  third.set_deadline(std::chrono::system_clock::now() + seconds(10));
  EXPECT_TRUE(stub->Detokenize(&third, request, &response).ok());
}

TEST(RpcServerStartTest, RefusesReachableAddressesWithoutInsecure) {
  const auto refused = RpcServer::Start({.address = "0.0.0.0:0"}, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("0.0.0.0:0: refused without --insecure"));
  FakeGeneration service;
  EXPECT_TRUE(
      RpcServer::Start({.address = "0.0.0.0:0", .insecure_any_address = true},
                       {&service})
          .ok());
}

TEST(RpcServerStartTest, MalformedAddressIsInvalid) {
  EXPECT_EQ(RpcServer::Start({.address = "x"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
