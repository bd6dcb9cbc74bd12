// Answers that lose their blocks to others, with the real binaries: the prefill
// worker pushes what it still holds of their prompts, or cannot, and the bits
// are those of an undisturbed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/support/process_cluster.h"

namespace baton::testing {
namespace {

constexpr int kRequests = 3;

// Ten blocks at first, nineteen in the end; nobody can foretell that it is so
// long. The first gives way to the others.
v1::GenerateRequest RequestOf(int i) {
  v1::GenerateRequest request = FixedRequest(150, 150, 10 + i);
  request.add_stop("no such text");
  request.set_priority(i == 0 ? 2 : 1);
  return request;
}

class PreemptedReturnTest : public ::testing::Test {
 protected:
  // Room for three that are young and two that are old.
  void Start(const std::string& way, int prefill_blocks = 200) {
    auto model = SmolLm2Path();
    ASSERT_TRUE(model.ok()) << model.status();
    ClusterOptions options;
    options.model = *model;
    options.worker_flags = {"--threads=1", "--max-context=304"};
    options.prefill_flags = {absl::StrCat("--kv-blocks=", prefill_blocks)};
    options.decode_flags = {
        "--kv-blocks=42",          "--length-quantile=0",
        "--disaggregation=always", "--speculation=off",
        "--tpot-target=0ms",       absl::StrCat("--preempted-return=", way)};
    auto cluster = ProcessCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  double Decoded(const std::string& name, const std::string& label = "") {
    const auto value = cluster_->decode(0).Metric(name, label);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(-1);
  }
  double Returns(const std::string& way) {
    return Decoded("baton_preempted_returns_total", "way=\"" + way + "\"");
  }
  double Failed(const std::string& reason) {
    return Decoded("baton_failed_fetches_total", "reason=\"" + reason + "\"");
  }

  // All at once; `meanwhile` runs when all have their prompts behind them and
  // none has lost its blocks.
  void RunTogether(const std::function<void()>& meanwhile) {
    std::atomic<int> running = 0;
    std::vector<std::thread> threads;
    answers_.resize(kRequests);
    for (int i = 0; i < kRequests; ++i) {
      threads.emplace_back([&, i] {
        int events = 0;
        answers_[i] =
            cluster_->Generate(RequestOf(i), [&](const v1::GenerateEvent&) {
              if (++events == 3) ++running;
              return true;
            });
      });
      const MonotonicTime limit = MonotonicNow() + std::chrono::seconds(30);
      while (running <= i && MonotonicNow() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    EXPECT_EQ(Decoded("baton_preemptions_total"), 0) << "too early";
    meanwhile();
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(Decoded("baton_preemptions_total"), 0);
    const auto replays = cluster_->router().Metric("baton_replays_total");
    if (replays.ok()) {
      EXPECT_EQ(*replays, 0);
    }
  }
  // Undisturbed, once all that was meant to break has broken.
  void Compare() {
    static std::vector<Answer>& alone = *new std::vector<Answer>();
    for (int i = 0; i < kRequests; ++i) {
      if (alone.size() == static_cast<size_t>(i)) {
        alone.push_back(cluster_->Generate(RequestOf(i)));
      }
      EXPECT_EQ(SameAnswer(answers_[i], alone[i]), absl::OkStatus()) << i;
    }
    EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
              absl::OkStatus());
  }

  std::unique_ptr<ProcessCluster> cluster_;
  std::vector<Answer> answers_;
};

TEST_F(PreemptedReturnTest, ByAPushFromThePrefillWorker) {
  ASSERT_NO_FATAL_FAILURE(Start("push"));
  RunTogether([] {});
  EXPECT_GT(Returns("push"), 0);
  EXPECT_EQ(Returns("recompute"), 0);
  EXPECT_GT(Decoded("baton_fetched_bytes_total"), 0);
  Compare();
}

TEST_F(PreemptedReturnTest, ComputedAgain) {
  ASSERT_NO_FATAL_FAILURE(Start("recompute"));
  RunTogether([] {});
  EXPECT_EQ(Returns("push"), 0);
  EXPECT_GT(Returns("recompute"), 0);
  Compare();
}

// The prefill worker has room for one maximal request: it lets go of the first
// prompt to read the third.
TEST_F(PreemptedReturnTest, WhatIsHeldNoMoreIsComputedAgain) {
  ASSERT_NO_FATAL_FAILURE(Start("push", /*prefill_blocks=*/19));
  RunTogether([] {});
  EXPECT_EQ(Returns("push"), 0);
  EXPECT_GT(Returns("recompute"), 0);
  EXPECT_GT(Failed("refused"), 0);
  Compare();
}

TEST_F(PreemptedReturnTest, APrefillWorkerThatIsGoneIsNotMissed) {
  ASSERT_NO_FATAL_FAILURE(Start("push"));
  RunTogether([this] { cluster_->prefill(0).Signal(SIGKILL); });
  EXPECT_EQ(Returns("push"), 0);
  EXPECT_GT(Returns("recompute"), 0);
  EXPECT_GT(Failed("refused") + Failed("failed"), 0);
  ASSERT_EQ(cluster_->RestartPrefill(0), absl::OkStatus());
  Compare();
}

TEST_F(PreemptedReturnTest, APrefillWorkerThatIsSilentIsNotWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(Start("push"));
  RunTogether([this] { cluster_->prefill(0).Signal(SIGSTOP); });
  EXPECT_EQ(Returns("push"), 0);
  EXPECT_GT(Returns("recompute"), 0);
  EXPECT_GT(Failed("failed"), 0);
  cluster_->prefill(0).Signal(SIGCONT);
  Compare();
}

}  // namespace
}  // namespace baton::testing
