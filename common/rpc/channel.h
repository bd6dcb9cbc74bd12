#ifndef BATON_COMMON_RPC_CHANNEL_H_
#define BATON_COMMON_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/base/monotonic_time.h"
#include "common/rpc/peer_role.h"
#include "common/rpc/tls_credentials.h"

namespace baton {

struct ChannelOptions {
  int max_message_bytes = 64 << 20;  // received
  int max_metadata_bytes = 16 << 10;
  // Servers of this code base accept pings every five seconds.
  Duration keepalive_time = std::chrono::seconds(10);
  Duration keepalive_timeout = std::chrono::seconds(10);
  // Exponential with jitter between the two.
  Duration min_reconnect_backoff = std::chrono::milliseconds(100);
  Duration max_reconnect_backoff = std::chrono::seconds(5);
  // A connection that takes longer to be made, TLS included, has failed.
  Duration connect_timeout = std::chrono::seconds(3);
  // A connection of its own, shared with no other channel of the process.
  bool own_connection = false;
  // Null: plain text. With TLS the peer is known by one of these roles or, with
  // none, by the name it is reached by; `server_name` replaces that.
  std::shared_ptr<const TlsCredentials> tls{};
  std::vector<PeerRole> peer_roles{};
  std::string server_name{};
  // Bytes of one stream that the peer may send ahead; 0: as gRPC has it.
  int stream_window_bytes = 0;
};

// A channel to host:port (any gRPC target is accepted). Connects
// lazily, ignores proxies of the environment and never retries a call by
// itself. Malformed targets show up as UNAVAILABLE calls.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelOptions& options = {});

}  // namespace baton

#endif  // BATON_COMMON_RPC_CHANNEL_H_
