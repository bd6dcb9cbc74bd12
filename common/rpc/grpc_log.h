#ifndef BATON_COMMON_RPC_GRPC_LOG_H_
#define BATON_COMMON_RPC_GRPC_LOG_H_

#include <cstdint>

namespace baton {

// From now on what the gRPC library has to say goes to our log at level debug:
// every failure it prints also reaches us as a status, but for TLS handshakes
// that a server gave up, which are logged as warnings, one a second.
// Idempotent, thread-safe; servers and channels of this folder call it.
void RouteGrpcLog();

// TLS handshakes that failed so far, in this process.
uint64_t FailedTlsHandshakes();

}  // namespace baton

#endif  // BATON_COMMON_RPC_GRPC_LOG_H_
