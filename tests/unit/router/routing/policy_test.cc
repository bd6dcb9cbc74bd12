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

StepCosts CostsOf(double factor) {
  return {.fixed = 1e-4 * factor,
          .weights = 4e-3 * factor,
          .row = 0.5e-3 * factor,
          .logit_row = 0.5e-3 * factor,
          .kv_token = 1e-6 * factor,
          .pair = 0.2e-6 * factor};
}

class PolicyCostTest : public PolicyTest {
 protected:
  PolicyCostTest() {
    for (WorkerView* view : {&p0_, &p1_, &d2_, &d3_}) {
      view->hello.set_step_token_budget(128);
      view->costs = CostsOf(1);
    }
  }
  const Candidate& ChooseFor(uint64_t prompt, uint64_t answer) {
    return places_[policy_->Choose(
        {.prefill_tokens = prompt, .context_tokens = prompt + answer},
        places_)];
  }
  const std::unique_ptr<RoutingPolicy> policy_ = MakeLeastLoaded();
};

TEST_F(PolicyCostTest, AFastWorkerMayHaveTheLongerQueue) {
  p1_.costs = CostsOf(3);
  p0_.load.set_queued_prefill_tokens(400);
  p1_.load.set_queued_prefill_tokens(200);
  EXPECT_EQ(ChooseFor(100, 10).prefill, &p0_) << "500 at 1 against 300 at 3";
  p1_.load.set_queued_prefill_tokens(50);
  EXPECT_EQ(ChooseFor(100, 10).prefill, &p1_) << "500 at 1 against 150 at 3";
}

TEST_F(PolicyCostTest, StepsOfTheBatchCountAndSoDoesTheAnswersLength) {
  d2_.load.set_running_sequences(12);
  d2_.load.set_running_positions(1200);
  d3_.load.set_running_sequences(2);
  d3_.load.set_running_positions(1300);
  EXPECT_EQ(ChooseFor(100, 50).decode, &d3_)
      << "more KV in use, but far fewer rows";
}

TEST_F(PolicyCostTest, WorkersThatMeasuredAlmostTheSameAreAlike) {
  p1_.costs = CostsOf(0.9);
  d3_.costs = CostsOf(0.9);
  p1_.placements = d3_.placements = 1;
  EXPECT_EQ(ChooseFor(100, 50).prefill, &p0_) << "used less";
  EXPECT_EQ(ChooseFor(100, 50).decode, &d2_);
  p0_.load.set_queued_prefill_tokens(1);
  EXPECT_EQ(ChooseFor(100, 50).prefill, &p1_);
}

TEST_F(PolicyCostTest, AnIdleWorkerIsTriedHoweverSlowItSaysItIs) {
  d3_.costs = CostsOf(10);
  for (WorkerView* view : {&p0_, &p1_, &d2_}) view->placements = 100;
  d2_.outstanding_attempts = 1;
  d2_.load.set_running_sequences(1);
  int tried = 0;
  for (int i = 0; i < 256; ++i) tried += ChooseFor(100, 50).decode == &d3_;
  EXPECT_EQ(tried, 2);
  d3_.outstanding_attempts = 1;
  tried = 0;
  for (int i = 0; i < 256; ++i) tried += ChooseFor(100, 50).decode == &d3_;
  EXPECT_EQ(tried, 0) << "one at a time";
}

TEST_F(PolicyCostTest, TokensCountWhenOneDoesNotTellItsCosts) {
  p0_.load.set_queued_prefill_tokens(400);
  p1_.load.set_queued_prefill_tokens(200);
  p1_.costs = CostsOf(3);
  d3_.costs.reset();
  EXPECT_EQ(ChooseFor(100, 10).prefill, &p1_);
}

TEST_F(PolicyCostTest, AWorkerWithoutRoomComesLast) {
  d2_.load.set_spare_blocks(5);
  d3_.load.set_spare_blocks(11);
  d3_.load.set_running_sequences(7);
  EXPECT_EQ(ChooseFor(100, 200).decode, &d3_)
      << "100 tokens and 64 are 11 blocks";
  EXPECT_EQ(ChooseFor(50, 30).decode, &d2_) << "room in both";
  d3_.unseen.Add(AttemptId(1), 1);
  EXPECT_EQ(ChooseFor(100, 200).decode, &d2_) << "room in neither";
  d3_.unseen.Add(AttemptId(2), 99);
  EXPECT_EQ(d3_.SpareBlocks(), 0u);
}

TEST_F(PolicyTest, RoomCountsWithoutCostsToo) {
  auto policy = MakeLeastLoaded();
  const PlacementRequest request{.prefill_tokens = 10, .context_tokens = 20};
  const auto chosen = [&] {
    return places_[policy->Choose(request, places_)].decode;
  };
  d2_.load.set_spare_blocks(2);
  d3_.load.set_spare_blocks(2);
  d3_.outstanding_kv_tokens = 49;
  EXPECT_EQ(chosen(), &d2_);
  d2_.load.set_spare_blocks(1);
  EXPECT_EQ(chosen(), &d3_);
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
