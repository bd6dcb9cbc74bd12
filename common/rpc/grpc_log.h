#ifndef BATON_COMMON_RPC_GRPC_LOG_H_
#define BATON_COMMON_RPC_GRPC_LOG_H_

namespace baton {

// From now on what the gRPC library has to say goes to our log at level debug:
// every failure it prints also reaches us as a status. Idempotent, thread-safe;
// servers and channels of this folder call it.
void RouteGrpcLog();

}  // namespace baton

#endif  // BATON_COMMON_RPC_GRPC_LOG_H_
