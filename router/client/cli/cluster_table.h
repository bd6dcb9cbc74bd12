#ifndef BATON_ROUTER_CLIENT_CLI_CLUSTER_TABLE_H_
#define BATON_ROUTER_CLIENT_CLI_CLUSTER_TABLE_H_

#include <string>

#include "proto/generation.pb.h"

namespace baton::cli {

// One row per process: role, id, address, state, KV tokens free and in total,
// running and waiting sequences; the last error of a worker below its row.
std::string FormatCluster(const v1::GetClusterInfoResponse& cluster,
                          const std::string& router_address);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_CLUSTER_TABLE_H_
