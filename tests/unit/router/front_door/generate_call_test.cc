// Clients that stop reading, over real gRPC: found, bounded, cut off, and no
// business of the others.
#include "router/front_door/generate_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/status.h"
#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWindowBytes = 65'535;

// A client that takes at most a small window ahead of its reader.
std::unique_ptr<v1::Generation::Stub> TightClient(ToyCluster& cluster) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Generation::NewStub(grpc::CreateCustomChannel(
      cluster.address(), grpc::InsecureChannelCredentials(), arguments));
}

v1::GenerateRequest Request(int max_tokens) {
  v1::GenerateRequest request;
  request.set_text("hello");
  request.set_max_tokens(max_tokens);
  return request;
}

// Of the series whose line starts with `name`.
double Value(ToyCluster& cluster, const std::string& name) {
  const std::string text = cluster.MetricsText();
  const size_t line = text.find("\n" + name + "{");
  if (line == std::string::npos) return -1;
  return std::stod(text.substr(text.find("} ", line) + 2));
}

size_t ReadAll(grpc::ClientReader<v1::GenerateEvent>& reader) {
  v1::GenerateEvent event;
  size_t bytes = 0;
  while (reader.Read(&event)) bytes += event.text().size();
  return bytes;
}

TEST(GenerateCallTest, AnAnswerThatPilesUpIsCutOff) {
  constexpr size_t kMost = 1 << 20;
  ToyCluster cluster({.token_bytes = 100'000,
                      .stream = {.max_unread_bytes = kMost,
                                 .slow_client_timeout = seconds(60)}});
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Request(400));
  ASSERT_TRUE(Eventually(
      [&] { return Value(cluster, "baton_slow_clients_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return cluster.held() == 0; }));
  EXPECT_TRUE(cluster.driver().WaitUntilIdle(seconds(5)));
  EXPECT_LT(ReadAll(*reader), kMost);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("client: reads too slowly (1"));
  EXPECT_THAT(status.error_message(),
              HasSubstr(" bytes are waiting, allowed 1048576)"));
  EXPECT_TRUE(
      Eventually([&] { return Value(cluster, "baton_unread_bytes") == 0; }));
  EXPECT_THAT(cluster.MetricsText(),
              HasSubstr("code=\"RESOURCE_EXHAUSTED\",finish_reason=\"none\""));
  EXPECT_THAT(cluster.MetricsText(), Not(HasSubstr("code=\"CANCELLED\"")))
      << "the client did not";
}

TEST(GenerateCallTest, AClientThatTakesNothingIsCutOffInTime) {
  ToyCluster cluster({.token_bytes = 1000,
                      .stream = {.slow_client_timeout = milliseconds(300)}});
  cluster.KeepLast();
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Request(400));
  EXPECT_TRUE(Eventually(
      [&] { return Value(cluster, "baton_unread_bytes") > 100'000; }));
  ASSERT_TRUE(Eventually(
      [&] { return Value(cluster, "baton_slow_clients_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return cluster.held() == 0; }));

  // The others do not notice.
  grpc::ClientContext other;
  const auto second = cluster.stub().Generate(&other, Request(1));
  EXPECT_EQ(ReadAll(*second), 1'000u);
  EXPECT_TRUE(second->Finish().ok());

  ReadAll(*reader);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "client: reads too slowly (took nothing for 300ms)");
}

TEST(GenerateCallTest, AClientThatNeverReadsAgainIsCancelled) {
  ToyCluster cluster({.token_bytes = 1000,
                      .stream = {.slow_client_timeout = milliseconds(100),
                                 .cut_off_grace = milliseconds(200)}});
  cluster.KeepLast();
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Request(400));
  EXPECT_TRUE(Eventually([&] {
    return Value(cluster, "baton_slow_clients_total") == 1 &&
           Value(cluster, "baton_unread_bytes") == 0;
  })) << "what waits for it is let go";
  EXPECT_TRUE(cluster.driver().WaitUntilClosed(seconds(10)));
}

TEST(GenerateCallTest, TheEndOfAnAnswerDoesNotWaitForEver) {
  ToyCluster cluster({.token_bytes = 1000,
                      .stream = {.slow_client_timeout = milliseconds(200)}});
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Request(400));
  EXPECT_TRUE(cluster.driver().WaitUntilIdle(seconds(5)));
  EXPECT_TRUE(Eventually([&] {
    return Value(cluster, "baton_slow_clients_total") == 1 &&
           Value(cluster, "baton_unread_bytes") == 0;
  }));
  EXPECT_TRUE(cluster.driver().WaitUntilClosed(seconds(10)));
  ReadAll(*reader);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(GenerateCallTest, AClientThatReadsSlowlyButSteadilyIsNot) {
  ToyCluster cluster({.token_bytes = 1000,
                      .stream = {.slow_client_timeout = milliseconds(500)}});
  cluster.KeepLast();
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Request(400));
  v1::GenerateEvent event;
  const MonotonicTime start = MonotonicNow();
  for (int i = 0; i < 399; ++i) {
    ASSERT_TRUE(reader->Read(&event));
    std::this_thread::sleep_for(milliseconds(3));
  }
  EXPECT_GT(MonotonicNow() - start, milliseconds(1000));
  context.TryCancel();
  reader->Finish();
  EXPECT_EQ(Value(cluster, "baton_slow_clients_total"), 0);
}

// Two answers at once of 400 kB each, of which the client may leave 100 kB.
class HeldBackAnswers : public ::testing::Test {
 protected:
  static constexpr size_t kMost = 100'000;
  static constexpr int kTokens = 400;
  HeldBackAnswers()
      : cluster_({.token_bytes = 1000,
                  .stream = {.max_unread_bytes = kMost,
                             .slow_client_timeout = milliseconds(300)}}) {
    request_ = Request(kTokens);
    request_.set_n(2);
    request_.set_best_of(3);
  }

  ToyCluster cluster_;
  v1::GenerateRequest request_;
};

TEST_F(HeldBackAnswers, AreReadInPiecesWithinTheDeadline) {
  const auto stub = TightClient(cluster_);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, request_);
  ASSERT_TRUE(
      Eventually([&] { return Value(cluster_, "baton_unread_bytes") > 0; }));
  EXPECT_GT(Value(cluster_, "baton_held_back_bytes"), 0);
  v1::GenerateEvent event;
  size_t tokens[2] = {};
  bool account = false;
  const MonotonicTime start = MonotonicNow();
  while (reader->Read(&event)) {
    EXPECT_LE(Value(cluster_, "baton_unread_bytes"), kMost);
    EXPECT_LE(event.ByteSizeLong(), kMost);
    account = event.has_usage();
    if (account) {
      EXPECT_EQ(event.usage().completion_tokens(), 3u * kTokens);
      continue;
    }
    ASSERT_LT(event.choice(), 2u);
    tokens[event.choice()] += event.token_ids_size();
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_GT(MonotonicNow() - start, milliseconds(350));
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(account);
  EXPECT_EQ(tokens[0], size_t{kTokens});
  EXPECT_EQ(tokens[1], size_t{kTokens});
  EXPECT_EQ(Value(cluster_, "baton_slow_clients_total"), 0);
  EXPECT_TRUE(Eventually([&] {
    return Value(cluster_, "baton_held_back_bytes") == 0 &&
           Value(cluster_, "baton_unread_bytes") == 0;
  }));
}

// A client that takes a little before each of its timeouts ends.
TEST_F(HeldBackAnswers, AreNotReadWithoutEnd) {
  ToyCluster cluster({.max_deadline = milliseconds(1500),
                      .token_bytes = 1000,
                      .stream = {.max_unread_bytes = kMost,
                                 .slow_client_timeout = milliseconds(500),
                                 .cut_off_grace = seconds(10)}});
  const auto stub = TightClient(cluster);
  grpc::ClientContext context;
  const MonotonicTime start = MonotonicNow();
  const auto reader = stub->Generate(&context, request_);
  v1::GenerateEvent event;
  size_t bytes = 0;
  while (reader->Read(&event)) {
    bytes += event.text().size();
    std::this_thread::sleep_for(milliseconds(200));
  }
  EXPECT_GE(MonotonicNow() - start, milliseconds(2000));
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(bytes, 2u * kTokens * 1000);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "client: reads too slowly (has not taken all by the deadline and "
            "500ms)");
  EXPECT_TRUE(cluster.driver().WaitUntilClosed(seconds(5)));
  EXPECT_EQ(Value(cluster, "baton_slow_clients_total"), 1);
  EXPECT_EQ(Value(cluster, "baton_held_back_bytes"), 0);
}

TEST_F(HeldBackAnswers, OfAClientThatTakesNothingAreDropped) {
  const auto stub = TightClient(cluster_);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, request_);
  ASSERT_TRUE(Eventually(
      [&] { return Value(cluster_, "baton_slow_clients_total") == 1; }));
  EXPECT_LT(ReadAll(*reader), 2u * kTokens * 1000);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "client: reads too slowly (took nothing for 300ms)");
  EXPECT_TRUE(Eventually([&] {
    return Value(cluster_, "baton_held_back_bytes") == 0 &&
           Value(cluster_, "baton_unread_bytes") == 0;
  }));
}

}  // namespace
}  // namespace baton::router
