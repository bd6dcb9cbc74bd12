#include "router/routing/policy.h"

#include "common/base/strings.h"

namespace baton::router {

absl::StatusOr<std::unique_ptr<RoutingPolicy>> MakePolicy(
    std::string_view name) {
  if (name == "round_robin") return MakeRoundRobin();
  if (name == "least_loaded") return MakeLeastLoaded();
  return absl::InvalidArgumentError(StrCat(
      "policy: unknown (got '", name, "', allowed round_robin, least_loaded)"));
}

}  // namespace baton::router
