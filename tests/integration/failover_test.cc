// Workers die with kill -9 at the worst moments; the client does not notice
// more than a pause, and no pool keeps a block.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/random_cancels.h"

namespace baton::testing {
namespace {

v1::GenerateRequest Request(int prompt_tokens, int max_tokens, bool seeded) {
  v1::GenerateRequest request;
  for (int i = 0; i < prompt_tokens; ++i) {
    request.mutable_token_ids()->add_ids(
        static_cast<uint32_t>(500 + (i * 7919) % 40000));
  }
  request.set_max_tokens(max_tokens);
  request.set_ignore_eos(true);
  request.set_logprobs(0);
  request.mutable_sampling()->set_temperature(seeded ? 0.8f : 0.0f);
  request.mutable_sampling()->set_seed(77);
  request.mutable_sampling()->set_frequency_penalty(0.3f);
  return request;
}

class FailoverTest : public ::testing::Test {
 protected:
  void Start(int prefill, int decode,
             std::vector<std::string> prefill_flags = {}) {
    auto model = SmolLm2Path();
    ASSERT_TRUE(model.ok()) << model.status();
    ClusterOptions options;
    options.model = *model;
    options.prefill = prefill;
    options.decode = decode;
    options.worker_flags = {"--threads=1", "--kv-blocks=600"};
    options.prefill_flags = std::move(prefill_flags);
    options.decode_flags = {"--disaggregation=always"};
    auto cluster = ProcessCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  int WorkerOf(const std::string& id) {
    return id.empty() ? -1 : id.back() - '0';
  }

  std::unique_ptr<ProcessCluster> cluster_;
};

TEST_F(FailoverTest, PrefillWorkerKilledInMidPrefill) {
  Start(2, 1, {"--step-tokens=64"});
  const v1::GenerateRequest request = Request(1400, 16, true);
  const Answer calm = cluster_->Generate(request);
  ASSERT_TRUE(calm.status.ok()) << calm.status;

  Answer answer;
  std::thread client([&] { answer = cluster_->Generate(request); });
  int victim = -1;
  const MonotonicTime give_up = MonotonicNow() + std::chrono::seconds(20);
  while (victim < 0 && MonotonicNow() < give_up) {
    for (int i = 0; i < 2; ++i) {
      auto running =
          cluster_->prefill(i).Metric("baton_kv_blocks", "state=\"running\"");
      auto sending =
          cluster_->prefill(i).Metric("baton_kv_blocks", "state=\"sending\"");
      if (running.ok() && sending.ok() && *running + *sending > 0) victim = i;
    }
  }
  ASSERT_GE(victim, 0) << "no prefill was seen running";
  cluster_->prefill(victim).Signal(SIGKILL);
  client.join();
  EXPECT_EQ(SameAnswer(answer, calm), absl::OkStatus());
  EXPECT_GE(answer.served.replays(), 1u);
  EXPECT_EQ(WorkerOf(answer.served.prefill_worker()), 1 - victim);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(FailoverTest, DecodeWorkerKilledInMidStream) {
  Start(1, 2);
  const v1::GenerateRequest request = Request(200, 60, true);
  const Answer calm = cluster_->Generate(request);
  ASSERT_TRUE(calm.status.ok()) << calm.status;
  bool killed = false;
  size_t seen = 0;
  const Answer answer =
      cluster_->Generate(request, [&](const v1::GenerateEvent& event) {
        seen += static_cast<size_t>(event.token_ids_size());
        if (seen >= 10 && !killed) {
          killed = true;
          for (int i = 0; i < 2; ++i) {
            auto running = cluster_->decode(i).Metric("baton_kv_blocks",
                                                      "state=\"running\"");
            if (running.ok() && *running > 0) cluster_->decode(i).Signal(9);
          }
        }
        return true;
      });
  ASSERT_TRUE(killed);
  EXPECT_EQ(SameAnswer(answer, calm), absl::OkStatus());
  EXPECT_GE(answer.served.replays(), 1u);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(FailoverTest, OnlyDecodeWorkerKilledThenRestarted) {
  Start(1, 1);
  const v1::GenerateRequest request = Request(50, 200, false);
  MonotonicTime killed_at = kNever;
  const Answer answer =
      cluster_->Generate(request, [&](const v1::GenerateEvent&) {
        if (killed_at == kNever) {
          cluster_->decode(0).Signal(SIGKILL);
          killed_at = MonotonicNow();
        }
        return true;
      });
  const Duration took = MonotonicNow() - killed_at;
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable)
      << answer.status;
  EXPECT_LT(took, std::chrono::seconds(5)) << "not at once";
  const Answer refused = cluster_->Generate(request);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnavailable)
      << refused.status;

  ASSERT_TRUE(cluster_->decode(0).WaitExit(std::chrono::seconds(5)).ok());
  ASSERT_EQ(cluster_->RestartDecode(0), absl::OkStatus());
  ASSERT_EQ(cluster_->WaitWorkersReady(std::chrono::seconds(30)),
            absl::OkStatus());
  const Answer again = cluster_->Generate(Request(50, 8, false));
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(FailoverTest, TwoHundredCancelsLeaveNothingBehind) {
  Start(1, 1, {"--step-tokens=32"});
  const CancelledEnds ends = CancelAtRandom(
      cluster_->stub(),
      {.clients = 8,
       .requests = 200,
       .make_request =
           [](std::mt19937* random) {
             return Request(1 + static_cast<int>((*random)() % 300), 40, true);
           },
       .longest = std::chrono::milliseconds(600)});
  EXPECT_EQ(ends.other, 0);
  EXPECT_GT(ends.cancelled, 20);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(15)),
            absl::OkStatus());
  for (Process* worker : {&cluster_->prefill(0), &cluster_->decode(0)}) {
    auto free = worker->Metric("baton_kv_blocks", "state=\"free\"");
    auto prefix = worker->Metric("baton_kv_blocks", "state=\"prefix\"");
    ASSERT_TRUE(free.ok() && prefix.ok());
    EXPECT_EQ(*free + *prefix, 600);
  }
  const Answer after = cluster_->Generate(Request(20, 4, false));
  EXPECT_TRUE(after.status.ok()) << after.status;
  EXPECT_EQ(cluster_->Drain(), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing
