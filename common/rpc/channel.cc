#include "common/rpc/channel.h"

#include "common/rpc/grpc_log.h"

namespace baton {
namespace {

int ToMs(Duration d) { return static_cast<int>(Milliseconds(d)); }

std::shared_ptr<grpc::ChannelCredentials> Credentials(
    const ChannelOptions& options) {
  if (options.tls == nullptr) return grpc::InsecureChannelCredentials();
  if (options.peer_roles.empty()) return options.tls->ForHost();
  return options.tls->ForPeer(options.peer_roles);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelOptions& options) {
  RouteGrpcLog();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, options.max_metadata_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, ToMs(options.keepalive_time));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   ToMs(options.keepalive_timeout));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   ToMs(options.min_reconnect_backoff));
  // Despite its name the time that one attempt gets at least.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   ToMs(options.connect_timeout));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   ToMs(options.max_reconnect_backoff));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.own_connection) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  }
  if (options.stream_window_bytes > 0) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                     options.stream_window_bytes);
  }
  if (!options.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.server_name);
  }
  return grpc::CreateCustomChannel(address, Credentials(options), arguments);
}

}  // namespace baton
