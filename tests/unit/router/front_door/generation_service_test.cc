// The service over real gRPC, with scripted workers.
#include "router/front_door/generation_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::GenerateRequest TextRequest(int max_tokens = 5) {
  v1::GenerateRequest request;
  request.set_text("hello");
  request.set_max_tokens(max_tokens);
  return request;
}

struct Reply {
  absl::Status status;
  std::map<uint32_t, std::string> text;
  v1::GenerateEvent last;
  std::string request_id;
};

Reply Ask(ToyCluster& cluster, const v1::GenerateRequest& request,
          const std::map<std::string, std::string>& metadata = {}) {
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  auto reader = cluster.stub().Generate(&context, request);
  Reply reply;
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
    reply.text[event.choice()] += event.text();
    reply.last = event;
  }
  reply.status = FromGrpcStatus(reader->Finish());
  const auto id = context.GetServerInitialMetadata().find("x-request-id");
  if (id != context.GetServerInitialMetadata().end()) {
    reply.request_id.assign(id->second.data(), id->second.size());
  }
  return reply;
}

TEST(GenerationServiceTest, AnswersOverBothWorkers) {
  ToyCluster cluster({});
  v1::GenerateRequest request = TextRequest(30);
  request.set_n(2);
  const Reply reply = Ask(cluster, request, {{"x-request-id", "mine"}});
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.text.at(0), "abcdefghijklmnopqrstuvwxyzabcd");
  EXPECT_EQ(reply.text.at(1), reply.text.at(0));
  EXPECT_EQ(reply.last.usage().prompt_tokens(), 6u);
  EXPECT_EQ(reply.last.usage().completion_tokens(), 60u);
  EXPECT_EQ(reply.last.served().prefill_worker(), "p");
  EXPECT_EQ(reply.last.served().decode_worker(), "d");
  EXPECT_EQ(reply.last.served().kv_bytes_moved(), 512u);
  EXPECT_EQ(reply.last.served().request_id(), "mine");
  EXPECT_EQ(reply.request_id, "mine");
  EXPECT_EQ(cluster.held(), 0u);
  EXPECT_NE(
      cluster.MetricsText().find("code=\"OK\",finish_reason=\"length\"} 1"),
      std::string::npos);
}

TEST(GenerationServiceTest, RequestIdsThatAreNotAcceptedAreReplaced) {
  ToyCluster cluster({});
  const Reply reply =
      Ask(cluster, TextRequest(), {{"x-request-id", std::string(200, 'x')}});
  EXPECT_THAT(reply.request_id, ::testing::StartsWith("req-"));
  const Reply refused = Ask(cluster, {}, {{"x-request-id", "label"}});
  EXPECT_EQ(refused.request_id, "label") << "errors carry it too";
}

TEST(GenerationServiceTest, ViolationsTravelAsDetails) {
  ToyCluster cluster({});
  v1::GenerateRequest request = TextRequest();
  request.set_n(9);
  request.set_priority(-1);
  const Reply reply = Ask(cluster, request);
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FieldViolations(reply.status),
              ElementsAre(FieldViolation{"n",
                                         "out of range (got 9, allowed "
                                         "1..8)"},
                          FieldViolation{"priority",
                                         "out of range (got -1, allowed "
                                         "0..2)"}));
  EXPECT_TRUE(Eventually([&] {
    return cluster.MetricsText().find("code=\"INVALID_ARGUMENT\"") !=
           std::string::npos;
  }));
}

TEST(GenerationServiceTest, CancelReachesTheWorkers) {
  ToyCluster cluster({});
  cluster.HoldDecode();
  grpc::ClientContext context;
  auto reader = cluster.stub().Generate(&context, TextRequest());
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.text(), "a") << "the first token does not wait for D";
  EXPECT_EQ(cluster.held(), 1u);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return cluster.held() == 0; }));
  EXPECT_TRUE(cluster.driver().WaitUntilIdle(seconds(5)));
}

TEST(GenerationServiceTest, DeadlineOfTheClient) {
  ToyCluster cluster({});
  cluster.HoldDecode();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(200));
  auto reader = cluster.stub().Generate(&context, TextRequest());
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return cluster.held() == 0; }));
}

TEST(GenerationServiceTest, DeadlineOfTheServer) {
  ToyCluster cluster({.max_deadline = milliseconds(200)});
  cluster.HoldDecode();
  const Reply reply = Ask(cluster, TextRequest());
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(reply.status.message(), "deadline: passed (after 1 tokens)");
  EXPECT_TRUE(Eventually([&] { return cluster.held() == 0; }));
}

TEST(GenerationServiceTest, LostDecodeWorkerIsUnavailableAtOnce) {
  ToyCluster cluster({});
  cluster.HoldDecode();
  grpc::ClientContext context;
  auto reader = cluster.stub().Generate(&context, TextRequest());
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  cluster.StopWorkers();
  EXPECT_FALSE(reader->Read(&event));
  const absl::Status status = FromGrpcStatus(reader->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RetryDelay(status).has_value());
}

TEST(GenerationServiceTest, DrainAndTerminate) {
  ToyCluster cluster({});
  cluster.HoldDecode();
  grpc::ClientContext context;
  auto reader = cluster.stub().Generate(&context, TextRequest());
  v1::GenerateEvent event;
  ASSERT_TRUE(reader->Read(&event));
  cluster.driver().Drain();
  ASSERT_TRUE(Eventually(
      [&] { return cluster.driver().ready().message() == "draining"; }));
  EXPECT_EQ(Ask(cluster, TextRequest()).status.message(), "router: draining");
  EXPECT_FALSE(cluster.driver().WaitUntilIdle(milliseconds(10)));
  cluster.driver().Terminate(absl::UnavailableError("router: shutting down"));
  EXPECT_TRUE(cluster.driver().WaitUntilIdle(seconds(5)));
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_message(),
            "router: shutting down (after 1 tokens)");
}

// A queue of one place, and somebody in it: there are no workers yet.
class FullQueueTest : public ::testing::Test {
 protected:
  FullQueueTest()
      : cluster_({.core = {.admission = {.max_requests = 1}},
                  .start_workers = false}),
        first_(cluster_.stub().Generate(&context_, TextRequest())) {
    EXPECT_TRUE(Eventually([&] {
      return cluster_.MetricsText().find(
                 "baton_queue_requests{model=\"toy\","
                 "role=\"router\"} 1") != std::string::npos;
    }));
  }
  ~FullQueueTest() override { context_.TryCancel(); }

  ToyCluster cluster_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateEvent>> first_;
};

TEST_F(FullQueueTest, RefusesWithoutAWordReadOfThePrompt) {
  v1::GenerateRequest request = TextRequest();
  request.set_text("");  // "prompt: no tokens", were it read
  const Reply reply = Ask(cluster_, request, {{"x-request-id", "mine"}});
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(reply.status.message(), "queue: full (1 requests, allowed 1)");
  EXPECT_TRUE(RetryDelay(reply.status).has_value());
  EXPECT_EQ(reply.request_id, "mine");
  const std::string metrics = cluster_.MetricsText();
  for (const char* line :
       {"code=\"RESOURCE_EXHAUSTED\",finish_reason=\"none\"} 1",
        "reason=\"queue_full\"} 1",
        "baton_refusal_seconds_count{model=\"toy\",role=\"router\"} 1"}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST_F(FullQueueTest, WhatIsInvalidIsToldAllTheSame) {
  v1::GenerateRequest request = TextRequest();
  request.set_n(9);
  EXPECT_EQ(Ask(cluster_, request).status.message(),
            "n: out of range (got 9, allowed 1..8)");
}

TEST_F(FullQueueTest, AHigherBandDisplaces) {
  v1::GenerateRequest request = TextRequest();
  request.set_priority(0);
  grpc::ClientContext context;
  const auto high = cluster_.stub().Generate(&context, request);
  const absl::Status displaced = FromGrpcStatus(first_->Finish());
  EXPECT_EQ(displaced.message(), "queue: full, and others have had less of it");
  context.TryCancel();
  EXPECT_EQ(high->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(GenerationServiceTest, ManyClientsAtOnce) {
  ToyCluster cluster({});
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < 10; ++k) {
        const Reply reply = Ask(cluster, TextRequest(20));
        if (reply.status.ok() && reply.text.at(0).size() == 20) ++good;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 80);
  EXPECT_EQ(cluster.held(), 0u);
}

TEST(GenerationServiceTest, TokenizeAndDetokenize) {
  ToyCluster cluster({});
  v1::TokenizeRequest request;
  request.set_text("a<|im_end|>");
  request.set_add_special(false);
  v1::TokenizeResponse tokens;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().Tokenize(&context, request, &tokens).ok());
    EXPECT_EQ(tokens.token_ids_size(), 11) << "plain text by default";
  }
  request.set_parse_special(true);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().Tokenize(&context, request, &tokens).ok());
    EXPECT_THAT(tokens.token_ids(), ElementsAre('a', ToyTokenizer::kEnd));
  }
  v1::DetokenizeRequest back;
  *back.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse text;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().Detokenize(&context, back, &text).ok());
    EXPECT_EQ(text.text(), "a<|im_end|>");
  }
  back.set_skip_special_tokens(true);
  back.add_token_ids(0xff);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().Detokenize(&context, back, &text).ok());
    EXPECT_EQ(text.text(), "a\xef\xbf\xbd");
  }
  back.add_token_ids(300);
  {
    grpc::ClientContext context;
    EXPECT_EQ(cluster.stub().Detokenize(&context, back, &text).error_message(),
              "token_ids[3]: outside the vocabulary (got 300, allowed "
              "0..299)");
  }
  {
    grpc::ClientContext context;
    EXPECT_EQ(cluster.stub().Tokenize(&context, {}, &tokens).error_message(),
              "input: exactly one of text, chat (got none)");
  }
}

TEST(GenerationServiceTest, ModelsAndCluster) {
  ToyCluster cluster({});
  ASSERT_TRUE(Eventually([&] { return cluster.driver().ready().ok(); }));
  v1::ListModelsResponse models;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().ListModels(&context, {}, &models).ok());
  }
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).id(), "toy");
  EXPECT_EQ(models.models(0).max_context_tokens(), 500u);
  EXPECT_EQ(models.models(0).vocabulary_size(), 300u);
  v1::GetClusterInfoResponse info;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(cluster.stub().GetClusterInfo(&context, {}, &info).ok());
  }
  ASSERT_EQ(info.workers_size(), 2);
  EXPECT_EQ(info.workers(0).state(), "ready");
  EXPECT_EQ(info.router_id(), "toy-router");
}

TEST(GenerationServiceTest, WorkersThatNeverComeAreUnavailable) {
  ToyCluster cluster({.start_workers = false});
  EXPECT_FALSE(cluster.driver().ready().ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(100));
  auto reader = cluster.stub().Generate(&context, TextRequest());
  v1::GenerateEvent event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace baton::router
