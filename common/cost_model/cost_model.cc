#include "common/cost_model/cost_model.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "common/base/check.h"

namespace baton {
namespace {

constexpr int kFitSteps = 200;
constexpr double kOutlier = 0.15;  // a larger miss pulls no harder
constexpr double kObserveRate = 0.02;
constexpr double kLargestError = 0.5;  // of a logarithm: a factor of 1.65
constexpr double kFarthestFactor = 8;  // from the probes
constexpr double kErrorWeight = 0.01;  // of the newest step
constexpr double kSmallestCost = 1e-12;

using Parameter = double StepCosts::*;
constexpr Parameter kParameters[] = {
    &StepCosts::fixed,     &StepCosts::weights,  &StepCosts::row,
    &StepCosts::logit_row, &StepCosts::kv_token, &StepCosts::pair};
constexpr size_t kCosts = std::size(kParameters);

// What each cost contributes to a step. Of two that bound each other only the
// larger one does.
StepCosts Parts(const StepCosts& costs, const StepShape& step) {
  StepCosts parts;
  const uint32_t rows = step.rows();
  if (rows == 0) return parts;
  parts.fixed = costs.fixed;
  parts.logit_row = costs.logit_row * step.logit_rows;
  const double products = costs.row * rows;
  (products > costs.weights ? parts.row : parts.weights) =
      std::max(products, costs.weights);
  for (const SpanShape& span : step.spans) {
    const double read = costs.kv_token * span.kv_tokens();
    const double compute = costs.pair * span.pairs();
    (compute > read ? parts.pair : parts.kv_token) += std::max(compute, read);
  }
  return parts;
}

double Sum(const StepCosts& parts) {
  double sum = 0;
  for (const Parameter parameter : kParameters) sum += parts.*parameter;
  return sum;
}

// A start for the fit with every cost active in some probe: few rows wait for
// memory, many for arithmetic.
StepCosts FirstGuess(const std::vector<CostModel::Probe>& probes) {
  double least = probes.front().seconds;
  double per_row = least;
  double per_pair = least;
  for (const CostModel::Probe& probe : probes) {
    least = std::min(least, probe.seconds);
    per_row = std::min(per_row, probe.seconds / probe.step.rows());
    double pairs = 0;
    for (const SpanShape& span : probe.step.spans) pairs += span.pairs();
    per_pair = std::min(per_pair, probe.seconds / pairs);
  }
  return {.fixed = least / 10,
          .weights = least * 0.8,
          .row = per_row,
          .logit_row = least / 10,
          .kv_token = per_pair * 5,
          .pair = per_pair / 4};
}

using Vector = std::array<double, kCosts>;
using Matrix = std::array<Vector, kCosts>;

// x of a · x = b for a symmetric positive definite matrix, by elimination.
Vector Solve(Matrix a, Vector b) {
  for (size_t i = 0; i < kCosts; ++i) {
    for (size_t j = i + 1; j < kCosts; ++j) {
      const double factor = a[j][i] / a[i][i];
      for (size_t k = i; k < kCosts; ++k) a[j][k] -= factor * a[i][k];
      b[j] -= factor * b[i];
    }
  }
  for (size_t i = kCosts; i-- > 0;) {
    for (size_t k = i + 1; k < kCosts; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// Huber's loss of the logarithms of the misses.
double Loss(const StepCosts& costs,
            const std::vector<CostModel::Probe>& probes) {
  double loss = 0;
  for (const CostModel::Probe& probe : probes) {
    const double miss =
        std::fabs(std::log(StepSeconds(costs, probe.step) / probe.seconds));
    loss += miss < kOutlier ? miss * miss : kOutlier * (2 * miss - kOutlier);
  }
  return loss;
}

// One Gauss-Newton step over the logarithms of the costs, damped.
StepCosts Improved(const StepCosts& costs,
                   const std::vector<CostModel::Probe>& probes,
                   double damping) {
  Matrix a = {};
  Vector b = {};
  for (const CostModel::Probe& probe : probes) {
    const StepCosts parts = Parts(costs, probe.step);
    const double predicted = Sum(parts);
    const double miss = std::log(predicted / probe.seconds);
    const double weight = std::min(1.0, kOutlier / std::fabs(miss));
    for (size_t i = 0; i < kCosts; ++i) {
      const double share = parts.*kParameters[i] / predicted;
      b[i] -= weight * share * miss;
      for (size_t k = 0; k < kCosts; ++k) {
        a[i][k] += weight * share * (parts.*kParameters[k] / predicted);
      }
    }
  }
  for (size_t i = 0; i < kCosts; ++i) a[i][i] += damping;
  const Vector change = Solve(a, b);
  StepCosts improved = costs;
  for (size_t i = 0; i < kCosts; ++i) {
    double& cost = improved.*kParameters[i];
    cost *= std::exp(std::clamp(change[i], -1.0, 1.0));
    cost = std::max(cost, kSmallestCost);
  }
  return improved;
}

}  // namespace

double StepSeconds(const StepCosts& costs, const StepShape& step) {
  return Sum(Parts(costs, step));
}

double RowsSeconds(const StepCosts& costs, uint32_t rows) {
  return rows == 0 ? 0 : std::max(costs.weights, costs.row * rows);
}

double SpanSeconds(const StepCosts& costs, const SpanShape& span) {
  return std::max(costs.kv_token * span.kv_tokens(), costs.pair * span.pairs());
}

std::vector<StepShape> CostModel::Probes(uint32_t max_rows,
                                         uint32_t max_positions) {
  std::vector<StepShape> probes;
  const auto add = [&](uint32_t depth, uint32_t rows, uint32_t logit_rows) {
    if (rows > max_rows || uint64_t{depth} + rows > max_positions) return;
    probes.push_back({{{depth, rows}}, logit_rows});
  };
  add(0, 1, 0);
  add(0, 1, 1);
  add(256, 1, 0);
  add(1024, 1, 0);
  for (uint32_t rows = 2; rows <= 64; rows *= 2) add(0, rows, 0);
  const uint32_t batch = std::min(8u, max_rows);
  probes.push_back({std::vector<SpanShape>(batch, {0, 1}), batch});
  add(256, 64, 0);
  add(1024, 64, 0);
  for (uint32_t rows = 128; rows <= 512; rows *= 2) add(0, rows, 0);
  return probes;
}

CostModel::CostModel(const std::vector<Probe>& probes) {
  std::vector<Probe> valid;
  std::copy_if(probes.begin(), probes.end(), std::back_inserter(valid),
               [](const Probe& p) { return p.seconds > 0 && p.step.rows(); });
  BATON_CHECK(!valid.empty());
  costs_ = FirstGuess(valid);
  double loss = Loss(costs_, valid);
  double damping = 1e-3;
  for (int i = 0; i < kFitSteps; ++i) {
    const StepCosts next = Improved(costs_, valid, damping);
    const double next_loss = Loss(next, valid);
    if (next_loss < loss) {
      costs_ = next;
      loss = next_loss;
      damping = std::max(damping / 3, 1e-6);
    } else {
      damping *= 4;
    }
  }
  probed_ = costs_;
}

Duration CostModel::Predict(const StepShape& step) const {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(StepSeconds(costs_, step)));
}

void CostModel::Observe(const StepShape& step, Duration took) {
  const double seconds = Seconds(took);
  const double predicted = StepSeconds(costs_, step);
  if (!(seconds > 0) || !(predicted > 0)) return;
  const double miss = std::fabs(seconds / predicted - 1);
  error_ = observed_ == 0 ? miss : error_ + kErrorWeight * (miss - error_);
  ++observed_;

  // The gradient of (log took - log predicted)² over the costs' logarithms,
  // normalised so that rate 1 would make this step's prediction right.
  const StepCosts parts = Parts(costs_, step);
  const double error =
      std::clamp(std::log(seconds / predicted), -kLargestError, kLargestError);
  double squares = 0;
  for (const Parameter parameter : kParameters) {
    const double share = parts.*parameter / predicted;
    squares += share * share;
  }
  for (const Parameter parameter : kParameters) {
    const double share = parts.*parameter / predicted;
    double& cost = costs_.*parameter;
    cost *= std::exp(kObserveRate * error * share / squares);
    cost = std::clamp(cost, probed_.*parameter / kFarthestFactor,
                      probed_.*parameter * kFarthestFactor);
  }
}

uint32_t CostModel::RowsWithin(const StepShape& others, uint32_t first_position,
                               uint32_t max_rows, Duration limit) const {
  const double seconds = Seconds(limit);
  StepShape step = others;
  step.spans.push_back({first_position, 0});
  const auto fits = [&](uint32_t rows) {
    step.spans.back().rows = rows;
    return StepSeconds(costs_, step) <= seconds;
  };
  uint32_t fitting = 0;
  uint32_t above = max_rows + 1;
  while (above - fitting > 1) {
    const uint32_t middle = fitting + (above - fitting) / 2;
    (fits(middle) ? fitting : above) = middle;
  }
  return fitting;
}

}  // namespace baton
