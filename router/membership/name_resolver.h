#ifndef BATON_ROUTER_MEMBERSHIP_NAME_RESOLVER_H_
#define BATON_ROUTER_MEMBERSHIP_NAME_RESOLVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::router {

// All addresses "ip:port" behind host:port, sorted, without repeats. If a name
// has IPv4 addresses, those only: a worker that is known by both kinds must not
// count twice. Blocks. Unavailable names the host and what the resolver said.
absl::StatusOr<std::vector<std::string>> ResolveName(const std::string& name);

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_NAME_RESOLVER_H_
