#include "router/front_door/router_drain.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <thread>

#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An answer of 400 kB that has ended, of which its client may leave 64 kB.
class RouterDrainTest : public ::testing::Test {
 protected:
  static constexpr int kTokens = 400;
  RouterDrainTest()
      : cluster_({.token_bytes = 1000,
                  .stream = {.max_unread_bytes = 64 << 10,
                             .slow_client_timeout = hours(1)}}) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65'535);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Generation::NewStub(grpc::CreateCustomChannel(
        cluster_.address(), grpc::InsecureChannelCredentials(), arguments));
    v1::GenerateRequest request;
    request.set_text("hello");
    request.set_max_tokens(kTokens);
    request.set_best_of(2);
    reader_ = stub_->Generate(&context_, request);
    v1::GenerateEvent event;
    EXPECT_TRUE(reader_->Read(&event));
    tokens_ = event.token_ids_size();
    EXPECT_TRUE(cluster_.driver().WaitUntilIdle(seconds(10)));
    requests_.StartServing();
    requests_.Add(SIGTERM);
  }
  int Drain(Duration timeout) {
    return DrainRouter(cluster_.driver(), [] { return 0; }, cluster_.server(),
                       requests_,
                       {.timeout = timeout,
                        .linger = {milliseconds(1), milliseconds(10)},
                        .flush = milliseconds(50)});
  }

  ToyCluster cluster_;
  ShutdownRequests requests_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Generation::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateEvent>> reader_;
  int tokens_ = 0;
};

TEST_F(RouterDrainTest, ClientsTakeTheirAnswersWithinTheTimeout) {
  auto status = std::async(std::launch::async, [&] { return Drain(hours(1)); });
  v1::GenerateEvent event;
  while (reader_->Read(&event)) {
    tokens_ += event.token_ids_size();
    std::this_thread::sleep_for(milliseconds(50));
  }
  const grpc::Status answer = reader_->Finish();
  EXPECT_TRUE(answer.ok()) << answer.error_message();
  EXPECT_EQ(tokens_, kTokens);
  EXPECT_EQ(status.get(), 0);
}

TEST_F(RouterDrainTest, AnswersThatAreCutOffAreNotClean) {
  EXPECT_EQ(Drain(milliseconds(100)), kExitNotClean);
  v1::GenerateEvent event;
  while (reader_->Read(&event)) continue;
  EXPECT_FALSE(reader_->Finish().ok());
}

TEST_F(RouterDrainTest, ASecondRequestEndsTheWait) {
  requests_.Add(SIGTERM);
  EXPECT_EQ(Drain(hours(1)), kExitNotClean);
}

}  // namespace
}  // namespace baton::router
