#ifndef BATON_KV_TRANSFER_GRPC_GRPC_TRANSPORT_H_
#define BATON_KV_TRANSFER_GRPC_GRPC_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/tls_credentials.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

struct GrpcTransportOptions {
  // host:port where peers connect; port 0 takes any free one. For 0.0.0.0 and
  // [::] peers are told the address of the first interface that is up and not
  // loopback.
  std::string listen = "127.0.0.1:0";
  // Null: plain text, beyond loopback only with `insecure`. With TLS both sides
  // must show a certificate of role prefill or decode.
  std::shared_ptr<const TlsCredentials> tls{};
  bool insecure = false;
};

// A transport over gRPC streams, one connection per link: portable, encrypted
// with TLS, and bounded: a link buffers at most 8 pieces of 256 KiB, and its
// peer waits beyond that. Caller memory is read and written inside Send and
// Progress only, so a link that is closed by force is over at once. Errors are
// those of RpcServer::Start. One thread at a time may use it.
absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcTransportOptions& options);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_GRPC_GRPC_TRANSPORT_H_
