#ifndef BATON_ROUTER_ROUTING_WORKER_SPEED_H_
#define BATON_ROUTER_ROUTING_WORKER_SPEED_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/cost_model/cost_model.h"
#include "proto/cluster.pb.h"

namespace baton::router {

// What a load report says of the costs of the worker's steps, nothing if it
// says nothing. INVALID_ARGUMENT names the field that no worker would send.
absl::StatusOr<std::optional<StepCosts>> StepCostsOf(
    const v1::WorkerLoad& load);

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_WORKER_SPEED_H_
