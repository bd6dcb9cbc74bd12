#include <algorithm>
#include <optional>
#include <tuple>

#include "common/base/mutants.h"
#include "router/routing/policy.h"

namespace baton::router {
namespace {

// Workers whose speeds differ by less are taken for equally fast: which of
// two equal ones measured a little better says nothing.
constexpr double kAlike = 1.25;
// One of so many choices tries an idle worker, however slow it says it is. What
// it measured while its machine was busy, only steps can put right.
constexpr uint64_t kTrialEvery = 128;
constexpr DecodeBatch kUsualBatch = {.sequences = 8, .positions = 8 * 512};

const WorkerView& PrefillOf(const Candidate& candidate) {
  return candidate.prefill == nullptr ? *candidate.decode : *candidate.prefill;
}

uint32_t StepTokensOf(const WorkerView& worker) {
  return std::max(worker.hello.step_token_budget(), 1u);
}

// Smallest and largest of a positive quantity.
struct Range {
  double least = 0, most = 0;
  void Add(double value) {
    least = least == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
  bool alike() const { return most <= kAlike * least; }
};

// The expected seconds of an answer in each place, by what the workers say of
// their costs.
class Forecast {
 public:
  // Nothing unless all of them say it: seconds and tokens do not compare.
  static std::optional<Forecast> Of(absl::Span<const Candidate> candidates) {
    Forecast forecast;
    for (const Candidate& candidate : candidates) {
      const WorkerView& prefill = PrefillOf(candidate);
      if (!prefill.costs.has_value() || !candidate.decode->costs.has_value()) {
        return std::nullopt;
      }
      forecast.prefill_.Add(SpeedOf(prefill));
      forecast.decode_.Add(StepOf(*candidate.decode));
    }
    return forecast;
  }

  // Until the first token, and from there to the last.
  double Seconds(const PlacementRequest& request,
                 const Candidate& candidate) const {
    const WorkerView& prefill = PrefillOf(candidate);
    const WorkerView& decode = *candidate.decode;
    const double tokens = static_cast<double>(prefill.PrefillBacklogTokens() +
                                              request.prefill_tokens);
    const double speed = prefill_.alike() ? prefill_.most : SpeedOf(prefill);
    const double own_step = DecodeStepSeconds(
        *decode.costs,
        decode.Decoding().With(request.choices, request.prefill_tokens));
    const double step =
        decode_.alike() ? own_step * decode_.least / StepOf(decode) : own_step;
    return tokens / speed +
           static_cast<double>(ExpectedAnswerTokens(request)) * step;
  }

 private:
  static double SpeedOf(const WorkerView& worker) {
    return PrefillTokensPerSecond(*worker.costs, StepTokensOf(worker));
  }
  static double StepOf(const WorkerView& worker) {
    return DecodeStepSeconds(*worker.costs, kUsualBatch);
  }

  Range prefill_;  // tokens per second
  Range decode_;   // seconds of a usual step
};

// It would be refused there, or others lose their blocks.
bool IsFull(const PlacementRequest& request, const Candidate& candidate) {
  return candidate.decode->SpareBlocks() <
             ExpectedKvBlocks(request, *candidate.decode) &&
         !BATON_MUTANT("spare_blocks_ignored");
}

using Order = std::tuple<bool, double, uint64_t, WorkerIndex, WorkerIndex>;

Order OrderOf(const PlacementRequest& request, const Candidate& candidate,
              const std::optional<Forecast>& forecast) {
  const WorkerView& decode = *candidate.decode;
  const WorkerView& prefill = PrefillOf(candidate);
  const double load = forecast.has_value()
                          ? forecast->Seconds(request, candidate)
                          : static_cast<double>(prefill.PrefillBacklogTokens() +
                                                decode.KvTokensInUse());
  return {IsFull(request, candidate), load,
          prefill.placements + decode.placements, prefill.index, decode.index};
}

bool IsIdle(const WorkerView& worker) {
  return worker.outstanding_attempts == 0 && worker.Decoding().sequences == 0 &&
         worker.PrefillBacklogTokens() == 0;
}

// Of the idle workers of the place, how often the one used least was used;
// nothing where none is idle.
std::optional<uint64_t> UseOfIdle(const Candidate& candidate) {
  std::optional<uint64_t> least;
  for (const WorkerView* worker : {&PrefillOf(candidate), candidate.decode}) {
    if (!IsIdle(*worker)) continue;
    least = std::min(least.value_or(worker->placements), worker->placements);
  }
  return least;
}

class LeastLoaded final : public RoutingPolicy {
 public:
  size_t Choose(const PlacementRequest& request,
                absl::Span<const Candidate> candidates) override {
    const std::optional<Forecast> forecast = Forecast::Of(candidates);
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (OrderOf(request, candidates[i], forecast) <
          OrderOf(request, candidates[best], forecast)) {
        best = i;
      }
    }
    if (!forecast.has_value() || ++choices_ % kTrialEvery != 0) return best;
    return TrialInsteadOf(best, request, candidates);
  }

  std::string_view name() const override { return "least_loaded"; }

 private:
  static size_t TrialInsteadOf(size_t best, const PlacementRequest& request,
                               absl::Span<const Candidate> candidates) {
    const bool full = IsFull(request, candidates[best]);
    std::optional<uint64_t> least;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const std::optional<uint64_t> use = UseOfIdle(candidates[i]);
      if (!use.has_value() || use >= least.value_or(*use + 1)) continue;
      if (IsFull(request, candidates[i]) > full) continue;
      least = use;
      best = i;
    }
    return best;
  }

  uint64_t choices_ = 0;  // between places whose costs are known
};

}  // namespace

std::unique_ptr<RoutingPolicy> MakeLeastLoaded() {
  return std::make_unique<LeastLoaded>();
}

}  // namespace baton::router
