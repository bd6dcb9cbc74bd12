#ifndef BATON_ROUTER_ROUTING_POLICY_H_
#define BATON_ROUTER_ROUTING_POLICY_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "router/routing/candidates.h"

namespace baton::router {

// Picks the place of one attempt. Deterministic given the calls made so far;
// not thread-safe.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  // Index into `candidates`, which is never empty and holds only places that
  // may start the attempt now.
  virtual size_t Choose(const PlacementRequest& request,
                        absl::Span<const Candidate> candidates) = 0;
  virtual std::string_view name() const = 0;
};

// Takes prefill and decode workers in turn, whatever their load.
std::unique_ptr<RoutingPolicy> MakeRoundRobin();
// Where the decode worker has spare blocks for it, if anywhere; of such places
// where the answer is expected soonest by the costs that the workers measured:
// the prompt tokens that wait at the prefill worker and its own, then steps of
// the decode worker's batch with it. Where a worker does not tell its costs,
// the least work in tokens: waiting to be prefilled, and of KV in use. Equal
// load: the one used less so far. Now and then an idle one is tried instead.
std::unique_ptr<RoutingPolicy> MakeLeastLoaded();

// "round_robin" or "least_loaded"; INVALID_ARGUMENT names what is allowed.
absl::StatusOr<std::unique_ptr<RoutingPolicy>> MakePolicy(
    std::string_view name);

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_POLICY_H_
