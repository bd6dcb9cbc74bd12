#ifndef BATON_COMMON_RPC_RPC_SERVER_H_
#define BATON_COMMON_RPC_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "common/rpc/peer_role.h"
#include "common/rpc/tls_credentials.h"

namespace baton {

struct ListenOptions {
  std::string address;  // host:port; port 0 takes any free one
  // Plain text on an address that other machines can reach. Without it and
  // without TLS only loopback addresses are accepted.
  bool insecure_any_address = false;
  int max_message_bytes = 16 << 20;  // received; sent is unlimited
  // Headers of one call; more end the connection, with RESOURCE_EXHAUSTED for
  // the call. A service that wants it to live counts them by itself, below.
  int max_metadata_bytes = 16 << 10;
  int max_concurrent_streams = 1000;  // calls of one connection; more wait
  // A connection silent for this long is probed, and closed when the probe is
  // not answered within the timeout.
  Duration keepalive_time = std::chrono::seconds(20);
  Duration keepalive_timeout = std::chrono::seconds(10);
  bool reflection = false;  // must be served; FailedPrecondition if it is not
  // Null: plain text. With TLS, peers must have one of these roles; with none,
  // they need no certificate.
  std::shared_ptr<const TlsCredentials> tls{};
  std::vector<PeerRole> admitted{};
  // Bytes of one stream that a peer may send ahead; 0: as gRPC has it.
  int stream_window_bytes = 0;
};

// A gRPC server with the health service (grpc.health.v1). Compressed messages
// are refused as UNIMPLEMENTED and never inflated: no limit of gRPC holds for
// the memory that would take. Thread-safe, but destroy it on one thread only.
class RpcServer {
 public:
  // Starts to serve at once; all names in the health service are NOT_SERVING
  // until SetServing. `services`, at least one, are not owned and must outlive
  // the server.
  // Errors: InvalidArgument for a malformed address, FailedPrecondition
  // "refused without --insecure", Unavailable when the address is in use; each
  // names the address and, where there is one, errno's text.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const ListenOptions& options,
      const std::vector<grpc::Service*>& services);
  // Shutdown at once.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // host:port actually bound.
  const std::string& address() const { return address_; }

  // `service` is a full proto name such as "baton.v1.Generation", or "" for
  // the process as a whole.
  void SetServing(const std::string& service, bool serving);

  // Marks everything NOT_SERVING, takes no new calls, waits up to `grace` for
  // running ones and cancels the rest. Idempotent; blocks.
  void Shutdown(Duration grace);

 private:
  RpcServer(std::unique_ptr<grpc::Server> server, std::string address);

  std::unique_ptr<grpc::Server> server_;
  const std::string address_;
};

}  // namespace baton

#endif  // BATON_COMMON_RPC_RPC_SERVER_H_
