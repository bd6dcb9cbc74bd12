#include "router/client/cli/bench_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "common/rpc/rpc_server.h"

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class FakeRouter final : public v1::Generation::Service {
 public:
  grpc::Status Generate(
      grpc::ServerContext* context, const v1::GenerateRequest* request,
      grpc::ServerWriter<v1::GenerateEvent>* writer) override {
    {
      std::lock_guard lock(mutex);
      prompts.insert({request->token_ids().ids().begin(),
                      request->token_ids().ids().end()});
      most_running = std::max(most_running, ++running);
    }
    std::this_thread::sleep_for(milliseconds(5));
    while (hang && !context->IsCancelled()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    v1::GenerateEvent event;
    for (int i = 0; i < request->max_tokens() - missing_tokens; ++i) {
      event.clear_token_ids();
      event.add_token_ids(1);
      writer->Write(event);
    }
    v1::GenerateEvent last;
    last.mutable_usage()->set_prompt_tokens(request->token_ids().ids_size());
    last.mutable_served()->set_prefill_ms(2.5);
    writer->Write(last);
    std::lock_guard lock(mutex);
    --running;
    return grpc::Status::OK;
  }

  std::mutex mutex;
  std::set<std::vector<uint32_t>> prompts;
  int running = 0;
  int most_running = 0;
  std::atomic<bool> hang = false;
  std::atomic<int> missing_tokens = 0;
};

class BenchRunnerTest : public testing::Test {
 protected:
  BenchRunnerTest()
      : server_(*RpcServer::Start({.address = "127.0.0.1:0"}, {&router_})),
        client_(server_->address()) {
    load_.num_prompts = 10;
    load_.input_tokens = 20;
    load_.output_tokens = 4;
    load_.vocabulary_size = 1000;
    load_.max_concurrency = 3;
  }

  FakeRouter router_;
  std::unique_ptr<RpcServer> server_;
  Client client_;
  BenchLoad load_;
};

TEST_F(BenchRunnerTest, ClosedLoopRecordsEveryRequestOnce) {
  BenchRunner runner(&client_, load_);
  const auto records = runner.Run();
  ASSERT_EQ(records.size(), 10u);
  for (const RequestRecord& record : records) {
    EXPECT_EQ(record.error, "");
    EXPECT_EQ(record.input_tokens, 20u);
    EXPECT_EQ(record.output_tokens, 4u);
    EXPECT_EQ(record.token_gaps.size(), 3u);
    EXPECT_GE(record.first_token, milliseconds(5));
    EXPECT_GE(record.total, record.first_token);
    EXPECT_EQ(record.prefill_ms, 2.5);
  }
  EXPECT_EQ(runner.done(), 10u);
  EXPECT_EQ(router_.prompts.size(), 10u);
  EXPECT_LE(router_.most_running, 3);
}

TEST_F(BenchRunnerTest, OpenLoopWaitsForArrivals) {
  load_.request_rate = 200;
  load_.max_concurrency = 10;
  BenchRunner runner(&client_, load_);
  EXPECT_EQ(runner.Run().size(), 10u);
  EXPECT_EQ(router_.prompts.size(), 10u);
}

TEST_F(BenchRunnerTest, ShortAnswersAreErrors) {
  router_.missing_tokens = 1;
  BenchRunner runner(&client_, load_);
  EXPECT_EQ(runner.Run().at(0).error, "asked for 4 output tokens, got 3");
}

TEST_F(BenchRunnerTest, StopCancelsRunningAndLeavesOutTheRest) {
  router_.hang = true;
  load_.request_rate = 1e-3;
  BenchRunner runner(&client_, load_);
  std::thread stopper([&] {
    while (true) {
      std::this_thread::sleep_for(milliseconds(1));
      std::lock_guard lock(router_.mutex);
      if (router_.running > 0) break;
    }
    runner.Stop();
  });
  const auto records = runner.Run();
  stopper.join();
  ASSERT_EQ(records.size(), 10u);
  EXPECT_THAT(records[0].error, HasSubstr("CANCELLED"));
  EXPECT_EQ(records[1].error, "not sent");
  EXPECT_EQ(records[9].error, "not sent");
}

}  // namespace
}  // namespace baton::cli
