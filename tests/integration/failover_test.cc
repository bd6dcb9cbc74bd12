// Workers die with kill -9 at the worst moments; the client does not notice
// more than a pause, and no pool keeps a block.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/random_cancels.h"

namespace baton::testing {
namespace {

// A test may be late for a moment of a request, and tries again.
constexpr int kTries = 5;

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

  static bool Busy(const Process& worker) {
    for (const char* state : {"running", "sending"}) {
      const auto blocks = worker.Metric("baton_kv_blocks",
                                        absl::StrCat("state=\"", state, "\""));
      if (blocks.ok() && *blocks > 0) return true;
    }
    return false;
  }
  void Revive(bool prefill, int i) {
    Process& worker = prefill ? cluster_->prefill(i) : cluster_->decode(i);
    ASSERT_TRUE(worker.WaitExit(std::chrono::seconds(5)).ok());
    ASSERT_EQ(
        prefill ? cluster_->RestartPrefill(i) : cluster_->RestartDecode(i),
        absl::OkStatus());
    ASSERT_EQ(cluster_->WaitWorkersReady(std::chrono::seconds(30)),
              absl::OkStatus());
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
  int victim = -1;
  for (int i = 0; i < kTries && answer.served.replays() == 0; ++i) {
    if (victim >= 0) Revive(true, victim);
    victim = -1;
    std::atomic<bool> over = false;
    std::thread client([&] {
      answer = cluster_->Generate(request);
      over = true;
    });
    while (victim < 0 && !over) {
      for (int w = 0; w < 2; ++w) {
        if (Busy(cluster_->prefill(w))) victim = w;
      }
    }
    if (victim >= 0) cluster_->prefill(victim).Signal(SIGKILL);
    client.join();
    ASSERT_EQ(SameAnswer(answer, calm), absl::OkStatus());
  }
  ASSERT_GE(victim, 0) << "no prefill was seen running";
  EXPECT_GE(answer.served.replays(), 1u);
  EXPECT_EQ(WorkerOf(answer.served.prefill_worker()), 1 - victim);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(FailoverTest, DecodeWorkerKilledInMidStream) {
  Start(1, 2);
  Answer answer;
  int tokens = 60;
  std::vector<int> killed;
  for (int i = 0; i < kTries && answer.served.replays() == 0; ++i) {
    for (const int w : killed) Revive(false, w);
    killed.clear();
    const v1::GenerateRequest request = Request(200, tokens, true);
    const Answer calm = cluster_->Generate(request);
    ASSERT_TRUE(calm.status.ok()) << calm.status;
    bool asked = false;
    size_t seen = 0;
    answer = cluster_->Generate(request, [&](const v1::GenerateEvent& event) {
      seen += static_cast<size_t>(event.token_ids_size());
      if (seen < 10 || asked) return true;
      asked = true;
      for (int w = 0; w < 2; ++w) {
        if (!Busy(cluster_->decode(w))) continue;
        cluster_->decode(w).Signal(SIGKILL);
        killed.push_back(w);
      }
      return true;
    });
    ASSERT_TRUE(asked);
    ASSERT_EQ(SameAnswer(answer, calm), absl::OkStatus());
    tokens *= 2;  // it may have been over
  }
  EXPECT_EQ(killed.size(), 1u);
  EXPECT_GE(answer.served.replays(), 1u);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(FailoverTest, OnlyDecodeWorkerKilledThenRestarted) {
  Start(1, 1);
  const v1::GenerateRequest request = Request(50, 1000, false);
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
