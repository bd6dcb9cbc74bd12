#ifndef BATON_COMMON_BASE_HOST_PORT_H_
#define BATON_COMMON_BASE_HOST_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// Where a process listens or connects: a DNS name, an IPv4 address or an IPv6
// address (written in brackets), and a TCP port.
struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  // "127.0.0.1:7000", "[::1]:7000".
  std::string ToString() const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// InvalidArgument unless `text` is host:port with a host and a port of
// 0..65535. Nothing is resolved.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// True for "localhost", 127.0.0.0/8 and ::1; a name is not resolved.
bool IsLoopback(std::string_view host);

// Why a server that failed to listen on `address` could not: binds it once and
// returns "ADDRESS: cannot listen: <text of errno>" as Unavailable (address in
// use), PermissionDenied or InvalidArgument (unknown host). OK when the bind
// works now. May resolve a name and so block.
absl::Status ListenError(const HostPort& address);

}  // namespace baton

#endif  // BATON_COMMON_BASE_HOST_PORT_H_
