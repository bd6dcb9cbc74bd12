#include <tuple>

#include "router/routing/policy.h"

namespace baton::router {
namespace {

using Order = std::tuple<uint64_t, uint64_t, WorkerIndex, WorkerIndex>;

Order OrderOf(const Candidate& candidate) {
  const WorkerView& decode = *candidate.decode;
  const WorkerView& prefill =
      candidate.prefill == nullptr ? decode : *candidate.prefill;
  return {prefill.PrefillBacklogTokens() + decode.KvTokensInUse(),
          prefill.placements + decode.placements, prefill.index, decode.index};
}

class LeastLoaded final : public RoutingPolicy {
 public:
  size_t Choose(const PlacementRequest&,
                absl::Span<const Candidate> candidates) override {
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (OrderOf(candidates[i]) < OrderOf(candidates[best])) best = i;
    }
    return best;
  }

  std::string_view name() const override { return "least_loaded"; }
};

}  // namespace

std::unique_ptr<RoutingPolicy> MakeLeastLoaded() {
  return std::make_unique<LeastLoaded>();
}

}  // namespace baton::router
