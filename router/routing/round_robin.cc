#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "router/routing/policy.h"

namespace baton::router {
namespace {

class RoundRobin final : public RoutingPolicy {
 public:
  size_t Choose(const PlacementRequest&,
                absl::Span<const Candidate> candidates) override {
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (Order(candidates[i]) < Order(candidates[best])) best = i;
    }
    ++turn_;
    last_turn_[candidates[best].decode->index] = turn_;
    if (candidates[best].prefill != nullptr) {
      last_turn_[candidates[best].prefill->index] = turn_;
    }
    return best;
  }

  std::string_view name() const override { return "round_robin"; }

 private:
  uint64_t LastTurn(const WorkerView& worker) const {
    const auto it = last_turn_.find(worker.index);
    return it == last_turn_.end() ? 0 : it->second;
  }

  std::tuple<uint64_t, uint64_t> Order(const Candidate& candidate) const {
    return {candidate.prefill == nullptr ? 0 : LastTurn(*candidate.prefill),
            LastTurn(*candidate.decode)};
  }

  uint64_t turn_ = 0;
  absl::flat_hash_map<WorkerIndex, uint64_t> last_turn_;
};

}  // namespace

std::unique_ptr<RoutingPolicy> MakeRoundRobin() {
  return std::make_unique<RoundRobin>();
}

}  // namespace baton::router
