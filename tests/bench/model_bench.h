#ifndef BATON_TESTS_BENCH_MODEL_BENCH_H_
#define BATON_TESTS_BENCH_MODEL_BENCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/engine/engine.h"
#include "common/model/model.h"
#include "tests/support/model_under_test.h"
#include "tests/support/profiling_backend.h"

namespace baton {

// Times the steps of one model: every sequence holds the same pseudo-random
// text. Only steps under test count, never the filling of the cache.
class ModelBench {
 public:
  // `model` outlives the bench, as does `profile`, which may be null and is
  // reset before the steps under test.
  ModelBench(const Model& model, uint32_t max_rows, uint32_t chunk,
             ProfilingBackend* profile);

  // Seconds to prefill `tokens` positions behind `depth` cached ones and draw
  // once. Errors of Engine::Step.
  absl::StatusOr<double> Prefill(uint32_t tokens, uint32_t depth);

  // Seconds of each of `steps` decode steps of `sequences` sequences that hold
  // `depth` tokens at first, greedy.
  absl::StatusOr<std::vector<double>> Decode(uint32_t sequences, uint32_t depth,
                                             uint32_t steps);

 private:
  // Feeds positions first..first + tokens - 1; returns the seconds.
  absl::StatusOr<double> Feed(const SequenceKv& kv, uint32_t first,
                              uint32_t tokens, bool draw);
  DrawRequest Draw(uint32_t position) const;

  const Model& model_;
  ProfilingBackend* const profile_;
  Engine engine_;
  const uint32_t chunk_;
  const uint32_t vocabulary_;
  const std::shared_ptr<const SamplingParams> greedy_;
};

}  // namespace baton

#endif  // BATON_TESTS_BENCH_MODEL_BENCH_H_
