#ifndef BATON_KV_TRANSFER_GRPC_GRPC_ADDRESS_H_
#define BATON_KV_TRANSFER_GRPC_GRPC_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/host_port.h"

namespace baton::transfer {

// "grpc:10.0.0.7:7300", "grpc:[fe80::7]:7300". INVALID_ARGUMENT for anything
// that is not exactly of this form, names and port 0 included.
absl::StatusOr<HostPort> ParseGrpcAddress(std::string_view address);
std::string FormatGrpcAddress(const HostPort& address);

// By what peers reach a server bound to `bound`: the same, but for 0.0.0.0 and
// :: the address of the first interface of that family that is up and not
// loopback, or else loopback.
HostPort ReachableAddress(const HostPort& bound);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_GRPC_GRPC_ADDRESS_H_
