#include "router/routing/worker_speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace baton::router {
namespace {

v1::WorkerLoad Load() {
  v1::WorkerLoad load;
  v1::StepCosts& costs = *load.mutable_step_costs();
  costs.set_fixed(1e-4);
  costs.set_weights(2e-3);
  costs.set_row(3e-4);
  costs.set_logit_row(4e-4);
  costs.set_kv_token(5e-7);
  costs.set_pair(6e-7);
  load.set_prediction_error(0.1);
  return load;
}

TEST(WorkerSpeed, ReadsWhatIsSaid) {
  const auto costs = StepCostsOf(Load());
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_TRUE(costs->has_value());
  EXPECT_EQ((*costs)->fixed, 1e-4);
  EXPECT_EQ((*costs)->weights, 2e-3);
  EXPECT_EQ((*costs)->row, 3e-4);
  EXPECT_EQ((*costs)->logit_row, 4e-4);
  EXPECT_EQ((*costs)->kv_token, 5e-7);
  EXPECT_EQ((*costs)->pair, 6e-7);
}

TEST(WorkerSpeed, NothingSaidIsNothingKnown) {
  const auto costs = StepCostsOf(v1::WorkerLoad());
  ASSERT_TRUE(costs.ok());
  EXPECT_FALSE(costs->has_value());
}

TEST(WorkerSpeed, RefusesWhatNoWorkerWouldSend) {
  for (const double bad : {0.0, -1.0, 1001.0, std::nan(""),
                           std::numeric_limits<double>::infinity()}) {
    v1::WorkerLoad load = Load();
    load.mutable_step_costs()->set_row(bad);
    EXPECT_EQ(StepCostsOf(load).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  v1::WorkerLoad load = Load();
  load.mutable_step_costs()->clear_pair();
  EXPECT_EQ(StepCostsOf(load).status().message(),
            "load.step_costs.pair: out of range (got 0, allowed above 0, to "
            "1000)");
  load = Load();
  load.set_prediction_error(std::nan(""));
  EXPECT_FALSE(StepCostsOf(load).ok());
}

}  // namespace
}  // namespace baton::router
