#ifndef BATON_COMMON_RPC_GRPC_LOG_H_
#define BATON_COMMON_RPC_GRPC_LOG_H_

#include <cstdint>

namespace baton {

// From now on what the gRPC and protobuf libraries have to say goes to our log
// at level debug: every failure they print also reaches us or the peer as a
// status, and whoever sends nonsense must not be able to fill the log with it.
// But for TLS handshakes that a server gave up: they are warnings, one a
// second. Idempotent, thread-safe; servers and channels of this folder call it.
void RouteGrpcLog();

// TLS handshakes that failed so far, in this process.
uint64_t FailedTlsHandshakes();

}  // namespace baton

#endif  // BATON_COMMON_RPC_GRPC_LOG_H_
