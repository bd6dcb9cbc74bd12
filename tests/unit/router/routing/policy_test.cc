#include "router/routing/policy.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/unit/router/routing/worker_view_builder.h"

namespace baton::router {
namespace {

class PolicyTest : public ::testing::Test {
 protected:
  const Candidate& Choose(RoutingPolicy& policy) {
    return places_[policy.Choose({}, places_)];
  }

  WorkerView p0_ = MakePrefillView(0);
  WorkerView p1_ = MakePrefillView(1);
  WorkerView d2_ = MakeDecodeView(2);
  WorkerView d3_ = MakeDecodeView(3);
  std::vector<Candidate> places_ = {
      {&p0_, &d2_, ""}, {&p0_, &d3_, ""}, {&p1_, &d2_, ""}, {&p1_, &d3_, ""}};
};

TEST_F(PolicyTest, RoundRobinUsesEveryWorkerEquallyOften) {
  auto policy = MakeRoundRobin();
  std::map<WorkerIndex, int> uses;
  for (int i = 0; i < 20; ++i) {
    const Candidate& place = Choose(*policy);
    ++uses[place.prefill->index];
    ++uses[place.decode->index];
  }
  for (uint32_t worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(uses[WorkerIndex(worker)], 10) << worker;
  }
}

TEST_F(PolicyTest, LeastLoadedCountsTokens) {
  auto policy = MakeLeastLoaded();
  p0_.load.set_queued_prefill_tokens(10);
  p1_.outstanding_prefill_tokens = 9;
  d2_.load.set_running_blocks(2);
  d2_.load.set_landing_blocks(1);
  d3_.outstanding_kv_tokens = 49;
  EXPECT_EQ(Choose(*policy).prefill, &p1_);
  EXPECT_EQ(Choose(*policy).decode, &d2_) << "48 tokens against 49";
  d2_.load.set_landing_blocks(2);
  EXPECT_EQ(Choose(*policy).decode, &d3_);
}

TEST_F(PolicyTest, LeastLoadedBreaksTiesByUse) {
  auto policy = MakeLeastLoaded();
  p0_.placements = 1;
  d2_.placements = 1;
  EXPECT_EQ(Choose(*policy).prefill, &p1_);
  EXPECT_EQ(Choose(*policy).decode, &d3_);
}

TEST(MakePolicyTest, NamesWhatIsAllowed) {
  EXPECT_EQ((*MakePolicy("round_robin"))->name(), "round_robin");
  EXPECT_EQ((*MakePolicy("least_loaded"))->name(), "least_loaded");
  EXPECT_EQ(MakePolicy("random").status().message(),
            "policy: unknown (got 'random', allowed round_robin, "
            "least_loaded)");
}

}  // namespace
}  // namespace baton::router
