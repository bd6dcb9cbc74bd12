#ifndef BATON_COMMON_COST_MODEL_COST_MODEL_H_
#define BATON_COMMON_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <vector>

#include "common/base/monotonic_time.h"
#include "common/cost_model/step_shape.h"

namespace baton {

// Seconds of the parts of a step, all positive:
//   t = fixed + max(weights, row · rows) + logit_row · logit_rows
//     + Σ over spans of max(kv_token · kv_tokens, pair · pairs)
// A roofline: few rows wait for memory, many for arithmetic.
struct StepCosts {
  double fixed = 0;      // of a step, whatever is in it
  double weights = 0;    // of reading all weights once
  double row = 0;        // of a row's products with all weights
  double logit_row = 0;  // of a row's logits and its draw
  double kv_token = 0;   // of reading one position's K and V, all layers
  double pair = 0;       // of a query position and one that it sees
};

double StepSeconds(const StepCosts& costs, const StepShape& step);
// The parts of that sum: weights and products of `rows`, attention of a span.
double RowsSeconds(const StepCosts& costs, uint32_t rows);
double SpanSeconds(const StepCosts& costs, const SpanShape& span);

// Predicts how long steps take. Fitted to probes when a worker starts, then
// follows the steps that really run: each one moves the costs that made up its
// prediction, by a bounded amount, so that one odd step changes little, and
// never further than a fixed factor from the probes. Not thread-safe.
class CostModel {
 public:
  struct Probe {
    StepShape step;
    double seconds = 0;
  };

  // What to probe where a step has at most `max_rows` rows and a sequence at
  // most `max_positions` positions (both >= 1), cheap steps first.
  static std::vector<StepShape> Probes(uint32_t max_rows,
                                       uint32_t max_positions);

  // Requires at least one probe of positive time.
  explicit CostModel(const std::vector<Probe>& probes);

  Duration Predict(const StepShape& step) const;
  // A step took so long; times that are not positive are ignored.
  void Observe(const StepShape& step, Duration took);

  // Rows of the span at `first_position` that may join `others` so that the
  // step stays within `limit`, at most `max_rows`. 0: not even one.
  uint32_t RowsWithin(const StepShape& others, uint32_t first_position,
                      uint32_t max_rows, Duration limit) const;

  // Rows up to which a step costs no more than one row: the crossover of
  // memory and arithmetic.
  double FreeRows() const { return costs_.weights / costs_.row; }

  const StepCosts& costs() const { return costs_; }
  // Mean of |took / predicted - 1| over recent steps; 0 before the first.
  double mean_absolute_error() const { return error_; }
  uint64_t observed_steps() const { return observed_; }

 private:
  StepCosts costs_;
  StepCosts probed_;  // bounds of later changes
  double error_ = 0;
  uint64_t observed_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_COST_MODEL_COST_MODEL_H_
