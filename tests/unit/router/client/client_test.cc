#include "router/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "common/rpc/rpc_server.h"
#include "common/rpc/status.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Echoes the prompt word by word; "fail" fails half way, "hang" never ends.
class FakeRouter final : public v1::Generation::Service {
 public:
  grpc::Status Generate(
      grpc::ServerContext* context, const v1::GenerateRequest* request,
      grpc::ServerWriter<v1::GenerateEvent>* writer) override {
    const auto& metadata = context->client_metadata();
    if (const auto it = metadata.find("x-request-id"); it != metadata.end()) {
      context->AddInitialMetadata("x-request-id",
                                  {it->second.data(), it->second.size()});
    }
    if (request->text() == "who") return WhoCalls(*context);
    v1::GenerateEvent event;
    event.set_text(request->text());
    event.add_token_ids(1);
    writer->Write(event);
    if (request->text() == "fail") {
      return ToGrpcStatus(InvalidField("n", "got 9, allowed 1..8"));
    }
    while (request->text() == "hang" && !context->IsCancelled()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (context->IsCancelled()) {
      ++cancelled;
      return grpc::Status::CANCELLED;
    }
    event.set_text("!");
    writer->Write(event);
    return grpc::Status::OK;
  }

  grpc::Status ListModels(grpc::ServerContext* context,
                          const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    response->add_models()->set_id("tiny");
    if (context->client_metadata().contains("authorization")) {
      return WhoCalls(*context);
    }
    return grpc::Status::OK;
  }

  // Fails with the credential as message.
  static grpc::Status WhoCalls(const grpc::ServerContext& context) {
    const auto it = context.client_metadata().find("authorization");
    if (it == context.client_metadata().end()) {
      return {grpc::StatusCode::UNAUTHENTICATED, "nobody"};
    }
    return {grpc::StatusCode::UNAUTHENTICATED,
            std::string(it->second.data(), it->second.size())};
  }

  std::atomic<int> cancelled = 0;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest()
      : server_(*RpcServer::Start({.address = "127.0.0.1:0"}, {&router_})),
        client_(server_->address()) {}

  static v1::GenerateRequest Request(const std::string& text) {
    v1::GenerateRequest request;
    request.set_text(text);
    return request;
  }

  FakeRouter router_;
  std::unique_ptr<RpcServer> server_;
  Client client_;
};

TEST_F(ClientTest, StreamsToTheEnd) {
  const auto stream = client_.Generate(Request("hi"), {.request_id = "abc"});
  std::string text;
  while (const auto event = stream->Next()) text += event->text();
  EXPECT_EQ(text, "hi!");
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->request_id(), "abc");
}

TEST_F(ClientTest, EveryCallCarriesTheToken) {
  EXPECT_EQ(client_.Generate(Request("who"))->Finish().message(), "nobody");
  Client known(server_->address(), {}, "abc");
  EXPECT_EQ(known.Generate(Request("who"))->Finish().message(), "Bearer abc");
  EXPECT_EQ(known.ListModels().status().message(), "Bearer abc");
}

TEST_F(ClientTest, ErrorsKeepTheirDetails) {
  const auto stream = client_.Generate(Request("fail"));
  EXPECT_EQ(stream->Next()->text(), "fail");
  EXPECT_FALSE(stream->Next().has_value());
  const absl::Status status = stream->Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolations(status).at(0).field, "n");
}

TEST_F(ClientTest, CancelEndsTheCallOnBothSides) {
  const auto stream = client_.Generate(Request("hang"));
  ASSERT_TRUE(stream->Next().has_value());
  std::thread canceller([&] { stream->Cancel(); });
  EXPECT_FALSE(stream->Next().has_value());
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(stream->Finish()));
  server_->Shutdown(seconds(10));
  EXPECT_EQ(router_.cancelled, 1);
}

TEST_F(ClientTest, DestroyingTheStreamCancels) {
  client_.Generate(Request("hang"))->Next();
  server_->Shutdown(seconds(10));
  EXPECT_EQ(router_.cancelled, 1);
}

TEST_F(ClientTest, DeadlineIsEnforced) {
  const auto stream =
      client_.Generate(Request("hang"), {.deadline = milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream->Finish()));
}

TEST_F(ClientTest, UnaryCallsReturnValuesOrStatuses) {
  const auto models = client_.ListModels();
  ASSERT_TRUE(models.ok());
  EXPECT_EQ(models->models(0).id(), "tiny");
  EXPECT_TRUE(absl::IsUnimplemented(client_.GetClusterInfo().status()));
  Client nobody("127.0.0.1:1");
  EXPECT_TRUE(absl::IsUnavailable(nobody.ListModels().status()));
}

}  // namespace
}  // namespace baton
