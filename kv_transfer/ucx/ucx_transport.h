#ifndef BATON_KV_TRANSFER_UCX_UCX_TRANSPORT_H_
#define BATON_KV_TRANSFER_UCX_UCX_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

struct UcxOptions {
  // The network is isolated: listen on every device. Otherwise UCX stays on
  // the loopback device, because a peer that reaches its TCP port can read and
  // write this process.
  bool trusted_network = false;
  // Devices to use instead, as UCX_NET_DEVICES; overrides the above.
  std::string net_devices;
  // How often a silent peer is checked for being alive.
  Duration keepalive = std::chrono::milliseconds(300);
};

// A transport over UCX active messages: TCP, and RDMA where present; shared
// memory when UCX_TLS names it ("self,sysv,posix,cma"): about half the latency
// between processes of one machine, for some megabytes of shared memory and a
// dozen descriptors per link, at most 64 links. Variables UCX_* of the
// environment win over what is set here, but for those that would let others
// reach this process's memory: they are INVALID_ARGUMENT. UNAVAILABLE with
// UCX's own words when no device can be used.
//
// Create it after any fork and before other threads read the environment: UCX
// takes settings of single transports from there. One thread at a time may use
// it.
absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(
    const UcxOptions& options);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_TRANSPORT_H_
