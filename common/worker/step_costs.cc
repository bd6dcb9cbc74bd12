#include "common/worker/step_costs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/engine/engine.h"
#include "common/tokens/token.h"

namespace baton {
namespace {

// Of all probes, the fastest counts. Rounds, since what disturbs one probe
// disturbs the next repetition too if it follows at once.
constexpr int kLeastRounds = 2, kMostRounds = 5;
constexpr size_t kLeastProbes = 3;

// The probes of a model: every span has blocks of its own.
class StepProber {
 public:
  StepProber(const Model& model, KvMemory* memory, uint32_t max_rows)
      : vocabulary_(static_cast<uint32_t>(model.config().vocabulary)),
        memory_(*memory),
        engine_(&model, max_rows),
        greedy_(Greedy()) {}
  ~StepProber() {
    for (uint32_t i = 0; i < used_; ++i) memory_.Clear(BlockId(i));
  }
  StepProber(const StepProber&) = delete;
  StepProber& operator=(const StepProber&) = delete;

  bool Fits(const StepShape& step) const {
    return BlocksOf(step) <= memory_.blocks();
  }

  absl::StatusOr<double> Seconds(const StepShape& step) {
    std::vector<StepSpan> spans;
    uint32_t next_block = 0;
    uint32_t logits = step.logit_rows;
    for (const SpanShape& shape : step.spans) {
      StepSpan span;
      for (uint32_t i = 0; i < shape.rows; ++i) {
        span.tokens.push_back(i * 7919 % vocabulary_);
      }
      span.first_position = shape.first_position;
      for (size_t i = BlocksFor(shape.first_position + shape.rows); i > 0;
           --i) {
        span.blocks.push_back(memory_.Block(BlockId(next_block++)));
      }
      if (logits > 0) {
        --logits;
        DrawRequest draw;
        draw.params = greedy_;
        draw.position = shape.first_position + shape.rows;
        span.draws.push_back(std::move(draw));
      }
      spans.push_back(std::move(span));
    }
    for (; used_ < next_block; ++used_) memory_.Clear(BlockId(used_));
    BATON_ASSIGN_OR_RETURN(const StepResult result, engine_.Step(spans));
    return baton::Seconds(result.elapsed);
  }

 private:
  static std::shared_ptr<const SamplingParams> Greedy() {
    const auto params = std::make_shared<SamplingParams>();
    params->temperature = 0;
    return params;
  }
  static size_t BlocksOf(const StepShape& step) {
    size_t blocks = 0;
    for (const SpanShape& span : step.spans) {
      blocks += BlocksFor(span.first_position + span.rows);
    }
    return blocks;
  }

  const uint32_t vocabulary_;
  KvMemory& memory_;
  Engine engine_;
  const std::shared_ptr<const SamplingParams> greedy_;
  uint32_t used_ = 0;  // blocks written to
};

}  // namespace

absl::StatusOr<CostModel> ProbeStepCosts(const Model& model, KvMemory* memory,
                                         const ProbeLimits& limits) {
  BATON_CHECK(limits.max_rows > 0 && limits.max_positions > 0);
  StepProber prober(model, memory, limits.max_rows);
  const StepShape first = {.spans = {{0, 1}}, .logit_rows = 1};
  BATON_RETURN_IF_ERROR(prober.Seconds(first).status());  // touches all weights

  const MonotonicTime start = MonotonicNow();
  std::vector<CostModel::Probe> probes;
  for (StepShape& step :
       CostModel::Probes(limits.max_rows, limits.max_positions)) {
    if (!prober.Fits(step)) continue;
    BATON_ASSIGN_OR_RETURN(const double seconds, prober.Seconds(step));
    probes.push_back({std::move(step), seconds});
    const bool first_round_over =
        MonotonicNow() >= start + limits.budget / kLeastRounds;
    if (first_round_over && probes.size() >= kLeastProbes) break;
  }
  for (int round = 2; round <= kMostRounds; ++round) {
    if (round > kLeastRounds && MonotonicNow() >= start + limits.budget) break;
    for (CostModel::Probe& probe : probes) {
      BATON_ASSIGN_OR_RETURN(const double seconds, prober.Seconds(probe.step));
      probe.seconds = std::min(probe.seconds, seconds);
    }
  }
  return CostModel(probes);
}

}  // namespace baton
