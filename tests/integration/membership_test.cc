// Workers that should not be in one cluster, and clients that go at any time.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/random_cancels.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

constexpr int kPoolBlocks = 2000;

class MembershipTest : public ::testing::Test {
 protected:
  static ClusterOptions Tiny() {
    TinyModelOptions tiny;
    tiny.weights = TinyModelOptions::Weights::kQ4_1;
    tiny.context = 4096;
    ClusterOptions options;
    options.model = WriteTinyModel(::testing::TempDir(), tiny).value_or("");
    options.worker_flags = {"--threads=1", "--step-tokens=32",
                            absl::StrCat("--kv-blocks=", kPoolBlocks)};
    options.decode_flags = {"--disaggregation=always"};
    return options;
  }

  void Start(const ClusterOptions& options) {
    ASSERT_NE(options.model, "");
    auto cluster = ProcessCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  static v1::GenerateRequest Request(int prompt_tokens, int max_tokens,
                                     uint64_t seed) {
    v1::GenerateRequest request = FixedRequest(prompt_tokens, max_tokens, seed);
    for (auto& id : *request.mutable_token_ids()->mutable_ids()) {
      id = 3 + id % 256;
    }
    return request;
  }

  std::unique_ptr<ProcessCluster> cluster_;
};

// Two halves of a rolling upgrade, told apart by what their KV looks like.
TEST_F(MembershipTest, DifferentFingerprintsAreNeverPaired) {
  ClusterOptions options = Tiny();
  options.prefill = options.decode = 2;
  for (const char* upgraded : {"prefill-1", "decode-1"}) {
    options.places[upgraded].flags = {"--kv-type=i8"};
  }
  Start(options);
  std::set<std::string> fingerprints, pairs;
  const v1::GetClusterInfoResponse info = cluster_->Info();
  for (const v1::WorkerInfo& worker : info.workers()) {
    fingerprints.insert(worker.hello().fingerprint());
  }
  ASSERT_EQ(fingerprints.size(), 2u);
  std::mutex mutex;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) {
        const Answer answer =
            cluster_->Generate(Request(40 + c, 30, static_cast<uint64_t>(i)));
        std::lock_guard lock(mutex);
        EXPECT_TRUE(answer.status.ok()) << answer.status;
        pairs.insert(absl::StrCat(answer.served.prefill_worker(), " ",
                                  answer.served.decode_worker()));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(pairs, (std::set<std::string>{"prefill-0 decode-0",
                                          "prefill-1 decode-1"}));
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

// A worker is its address and epoch; a name is a label and confuses nobody.
TEST_F(MembershipTest, TwoWorkersOfOneName) {
  ClusterOptions options = Tiny();
  options.decode = 2;
  options.places["decode-1"].worker_id = "decode-0";
  Start(options);
  const v1::GenerateRequest request = Request(50, 40, 7);
  const Answer first = cluster_->Generate(request);
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(SameAnswer(cluster_->Generate(request), first),
                  absl::OkStatus());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(
        cluster_->decode(i).Metric("baton_decode_tokens_total").value_or(0), 0)
        << i;
  }
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
            absl::OkStatus());
}

TEST_F(MembershipTest, AThousandAbortsLeaveNothingBehind) {
  Start(Tiny());
  const CancelledEnds ends = CancelAtRandom(
      cluster_->stub(), {.clients = 12,
                         .requests = 1000,
                         .make_request =
                             [](std::mt19937* random) {
                               return Request(
                                   1 + static_cast<int>((*random)() % 1200),
                                   200, (*random)() % 100);
                             },
                         .longest = std::chrono::milliseconds(120)});
  EXPECT_EQ(ends.other, 0);
  EXPECT_GT(ends.cancelled, 500);
  EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(15)),
            absl::OkStatus());
  for (Process* worker : {&cluster_->prefill(0), &cluster_->decode(0)}) {
    auto free = worker->Metric("baton_kv_blocks", "state=\"free\"");
    auto prefix = worker->Metric("baton_kv_blocks", "state=\"prefix\"");
    ASSERT_TRUE(free.ok() && prefix.ok());
    EXPECT_EQ(*free + *prefix, kPoolBlocks);
  }
  EXPECT_EQ(cluster_->Drain(), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing
