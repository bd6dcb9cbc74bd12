#ifndef BATON_COMMON_COST_MODEL_STEP_SHAPE_H_
#define BATON_COMMON_COST_MODEL_STEP_SHAPE_H_

#include <cstdint>
#include <vector>

namespace baton {

// Consecutive positions of one sequence inside a step.
struct SpanShape {
  uint32_t first_position = 0;
  uint32_t rows = 0;

  // Positions whose K and V are read, and (query, visible position) pairs.
  double kv_tokens() const { return double{1} * first_position + rows; }
  double pairs() const {
    return double{1} * rows * (first_position + (rows + 1) / 2.0);
  }
};

// What the time of a step depends on.
struct StepShape {
  std::vector<SpanShape> spans;
  uint32_t logit_rows = 0;

  uint32_t rows() const {
    uint32_t sum = 0;
    for (const SpanShape& span : spans) sum += span.rows;
    return sum;
  }
};

}  // namespace baton

#endif  // BATON_COMMON_COST_MODEL_STEP_SHAPE_H_
