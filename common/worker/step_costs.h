#ifndef BATON_COMMON_WORKER_STEP_COSTS_H_
#define BATON_COMMON_WORKER_STEP_COSTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"

namespace baton {

// What to probe: steps of at most `max_rows` rows, for about `budget`. Cheap
// probes come first, so a slow machine learns fewer of them, not later.
struct ProbeLimits {
  uint32_t max_rows = 0;       // >= 1
  uint32_t max_positions = 0;  // of a sequence, >= 1
  Duration budget = std::chrono::milliseconds(400);
};

// Times forward passes of `model`. They write into the blocks of `memory`, of
// which none may be in use, and leave them zero. Errors of Engine::Step.
absl::StatusOr<CostModel> ProbeStepCosts(const Model& model, KvMemory* memory,
                                         const ProbeLimits& limits);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_STEP_COSTS_H_
