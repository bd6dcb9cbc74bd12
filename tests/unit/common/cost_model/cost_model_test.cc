#include "common/cost_model/cost_model.h"

#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace baton {
namespace {

// A 2-core CPU with a small model, roughly.
constexpr StepCosts kTruth = {.fixed = 150e-6,
                              .weights = 3e-3,
                              .row = 0.4e-3,
                              .logit_row = 0.2e-3,
                              .kv_token = 0.8e-6,
                              .pair = 0.15e-6};

StepCosts Scaled(StepCosts costs, double factor) {
  return {costs.fixed * factor,    costs.weights * factor,
          costs.row * factor,      costs.logit_row * factor,
          costs.kv_token * factor, costs.pair * factor};
}

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds));
}

// `noise`: deviation of the logarithm; a machine is only ever slowed down.
CostModel Fitted(const StepCosts& truth, double noise = 0) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, noise);
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(512, 2048)) {
    const double seconds =
        StepSeconds(truth, step) * std::exp(std::fabs(normal(random)));
    probes.push_back({std::move(step), seconds});
  }
  return CostModel(probes);
}

// Steps as workers run them, none of them a probe.
std::vector<StepShape> RealSteps() {
  std::vector<StepShape> steps;
  for (const uint32_t batch : {1, 3, 6, 12, 24}) {
    for (const uint32_t depth : {20, 300, 900}) {
      steps.push_back(
          {std::vector<SpanShape>(batch, SpanShape{depth, 1}), batch});
    }
  }
  for (const uint32_t rows : {48, 200, 400}) {
    for (const uint32_t depth : {0, 500, 1500}) {
      steps.push_back({{{depth, rows}}, 0});
      steps.push_back({{{depth, rows}, {depth, 1}, {2 * depth, 1}}, 2});
    }
  }
  return steps;
}

double WorstMiss(const CostModel& model, const StepCosts& truth) {
  double worst = 0;
  for (const StepShape& step : RealSteps()) {
    const double predicted = Seconds(model.Predict(step));
    worst =
        std::max(worst, std::fabs(predicted / StepSeconds(truth, step) - 1));
  }
  return worst;
}

double MeanMiss(const CostModel& model, const StepCosts& truth) {
  double sum = 0;
  for (const StepShape& step : RealSteps()) {
    const double predicted = Seconds(model.Predict(step));
    sum += std::fabs(predicted / StepSeconds(truth, step) - 1);
  }
  return sum / static_cast<double>(RealSteps().size());
}

TEST(CostModelTest, TheFormulaIsARoofline) {
  EXPECT_EQ(StepSeconds(kTruth, {}), 0);
  const double one = StepSeconds(kTruth, {.spans = {{99, 1}}});
  EXPECT_DOUBLE_EQ(one, 150e-6 + 3e-3 + 100 * 0.8e-6);
  const double chunk = StepSeconds(kTruth, {.spans = {{0, 100}}});
  EXPECT_DOUBLE_EQ(chunk, 150e-6 + 100 * 0.4e-3 + 5050 * 0.15e-6);
  const double two =
      StepSeconds(kTruth, {.spans = {{99, 1}, {0, 100}}, .logit_rows = 2});
  EXPECT_DOUBLE_EQ(
      two, 150e-6 + 101 * 0.4e-3 + 100 * 0.8e-6 + 5050 * 0.15e-6 + 2 * 0.2e-3);
}

TEST(CostModelTest, ProbesCoverMemoryArithmeticAndAttention) {
  const std::vector<StepShape> probes = CostModel::Probes(512, 2048);
  uint32_t most_rows = 0, deepest = 0, logits = 0;
  for (const StepShape& probe : probes) {
    most_rows = std::max(most_rows, probe.rows());
    deepest = std::max(deepest, probe.spans[0].first_position);
    logits += probe.logit_rows;
  }
  EXPECT_EQ(most_rows, 512);
  EXPECT_EQ(deepest, 1024);
  EXPECT_GT(logits, 0);
}

TEST(CostModelTest, ProbesStayWithinTheLimits) {
  for (const uint32_t max_rows : {1u, 7u, 512u}) {
    for (const uint32_t max_positions : {1u, 16u, 300u, 2048u}) {
      const auto probes = CostModel::Probes(max_rows, max_positions);
      EXPECT_FALSE(probes.empty());
      for (const StepShape& probe : probes) {
        EXPECT_GE(probe.rows(), 1);
        EXPECT_LE(probe.rows(), max_rows);
        for (const SpanShape& span : probe.spans) {
          EXPECT_LE(span.first_position + span.rows, max_positions);
        }
      }
    }
  }
}

TEST(CostModelTest, TheFitPredictsStepsThatWereNotProbed) {
  EXPECT_LT(WorstMiss(Fitted(kTruth), kTruth), 0.08);
  EXPECT_LT(MeanMiss(Fitted(kTruth, 0.1), kTruth), 0.15);
}

TEST(CostModelTest, TheFitFindsAnyMachine) {
  for (const double speed : {0.001, 0.1, 30.0}) {
    const StepCosts truth = Scaled(kTruth, speed);
    EXPECT_LT(WorstMiss(Fitted(truth), truth), 0.08) << speed;
  }
  StepCosts wide = kTruth;  // AMX: arithmetic is nearly free
  wide.row = 0.03e-3;
  wide.pair = 0.02e-6;
  EXPECT_LT(WorstMiss(Fitted(wide), wide), 0.08);
  StepCosts slow = kTruth;  // fp32 weights: no row is free
  slow.row = 3e-3;
  EXPECT_LT(WorstMiss(Fitted(slow), slow), 0.08);
}

TEST(CostModelTest, FreeRowsIsTheCrossover) {
  EXPECT_NEAR(Fitted(kTruth).FreeRows(), 3e-3 / 0.4e-3, 1);
}

TEST(CostModelTest, FollowsAMachineThatGetsSlower) {
  CostModel model = Fitted(kTruth);
  const StepCosts slower = Scaled(kTruth, 2);
  for (int round = 0; round < 80; ++round) {
    for (const StepShape& step : RealSteps()) {
      model.Observe(step, FromSeconds(StepSeconds(slower, step)));
    }
  }
  EXPECT_LT(WorstMiss(model, slower), 0.1);
  EXPECT_LT(model.mean_absolute_error(), 0.1);
  EXPECT_EQ(model.observed_steps(), 80 * RealSteps().size());
}

TEST(CostModelTest, OneOddStepChangesLittle) {
  CostModel model = Fitted(kTruth);
  const StepShape step = {.spans = {{100, 1}}, .logit_rows = 1};
  const double before = Seconds(model.Predict(step));
  model.Observe(step, std::chrono::seconds(10));
  EXPECT_GT(Seconds(model.Predict(step)), before);
  EXPECT_LT(Seconds(model.Predict(step)), before * 1.02);
}

TEST(CostModelTest, NeverLeavesTheNeighbourhoodOfTheProbes) {
  CostModel model = Fitted(kTruth);
  const StepShape step = {.spans = {{100, 1}}, .logit_rows = 1};
  const double before = Seconds(model.Predict(step));
  for (int i = 0; i < 10000; ++i) model.Observe(step, std::chrono::hours(1));
  EXPECT_LE(Seconds(model.Predict(step)), before * 8.01);
  for (int i = 0; i < 10000; ++i) model.Observe(step, Duration(1));
  EXPECT_GE(Seconds(model.Predict(step)), before / 8.01);
}

TEST(CostModelTest, IgnoresTimesThatAreNotTimes) {
  CostModel model = Fitted(kTruth);
  model.Observe({.spans = {{0, 1}}}, Duration(0));
  model.Observe({.spans = {{0, 1}}}, Duration(-5));
  model.Observe({}, std::chrono::seconds(1));
  EXPECT_EQ(model.observed_steps(), 0);
}

TEST(CostModelTest, TheErrorIsThatOfRecentSteps) {
  CostModel model = Fitted(kTruth);
  const StepShape step = {.spans = {{100, 1}}, .logit_rows = 1};
  const double predicted = Seconds(model.Predict(step));
  model.Observe(step, FromSeconds(predicted * 1.4));
  EXPECT_NEAR(model.mean_absolute_error(), 0.4, 0.001);
}

TEST(CostModelTest, RowsWithinIsTheLargestChunkThatFits) {
  const CostModel model = Fitted(kTruth);
  const StepShape decode = {std::vector<SpanShape>(4, {200, 1}), 4};
  for (const int milliseconds : {6, 20, 80}) {
    const Duration limit = std::chrono::milliseconds(milliseconds);
    const uint32_t rows = model.RowsWithin(decode, 300, 512, limit);
    ASSERT_GT(rows, 0);
    ASSERT_LT(rows, 512);
    StepShape step = decode;
    step.spans.push_back({300, rows});
    EXPECT_LE(model.Predict(step), limit);
    ++step.spans.back().rows;
    EXPECT_GT(model.Predict(step), limit);
  }
  EXPECT_EQ(model.RowsWithin(decode, 0, 512, std::chrono::seconds(9)), 512);
  EXPECT_EQ(model.RowsWithin(decode, 0, 512, Duration(1)), 0);
}

}  // namespace
}  // namespace baton
