#ifndef BATON_COMMON_RPC_CHANNEL_H_
#define BATON_COMMON_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/base/monotonic_time.h"

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
  // A connection of its own, shared with no other channel of the process.
  bool own_connection = false;
};

// A plain-text channel to host:port (any gRPC target is accepted). Connects
// lazily, ignores proxies of the environment and never retries a call by
// itself. Malformed targets show up as UNAVAILABLE calls.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelOptions& options = {});

}  // namespace baton

#endif  // BATON_COMMON_RPC_CHANNEL_H_
