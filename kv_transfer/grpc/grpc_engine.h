#ifndef BATON_KV_TRANSFER_GRPC_GRPC_ENGINE_H_
#define BATON_KV_TRANSFER_GRPC_GRPC_ENGINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/rpc_server.h"
#include "kv_transfer/grpc/grpc_streams.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

// The transport of MakeGrpcTransport. gRPC's threads only move pieces between
// the pipes and the network; everything else happens in Progress.
class GrpcEngine final : public Transport {
 public:
  explicit GrpcEngine(const GrpcTransportOptions& options);
  // Ends every stream and waits for gRPC.
  ~GrpcEngine() override;
  absl::Status Start();

  std::string_view name() const override { return "grpc"; }
  std::string address() const override { return address_; }
  absl::StatusOr<LinkId> Connect(std::string_view address) override;
  absl::Status Send(LinkId link, SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override;
  void Close(LinkId link) override;
  bool Progress(TransportHandler* handler) override;
  void Wait(Duration timeout) override { bell_->Wait(timeout); }
  void Wake() override { bell_->Ring(); }

 private:
  struct Outgoing {
    SendId send;
    std::string header;
    absl::Span<const std::byte> payload;
    size_t sent = 0;  // of the payload
  };
  // What is being received.
  struct Incoming {
    std::string header;
    absl::Span<std::byte> place;
    size_t expected = 0;
    size_t received = 0;
  };
  struct Link {
    std::unique_ptr<GrpcPipe> pipe;
    bool accepted = false;
    std::deque<Outgoing> sends;
    std::optional<Incoming> incoming;
    std::optional<absl::Status> ending;
  };

  void Add(std::unique_ptr<GrpcPipe> pipe, bool accepted);
  bool Receive(LinkId id, Link* link, TransportHandler* handler);
  absl::Status Accept(LinkId id, Link* link, const v1::LinkPiece& piece,
                      TransportHandler* handler);
  bool Pump(LinkId id, Link* link, TransportHandler* handler);
  void Finish(LinkId id, TransportHandler* handler);
  void Sweep();

  const GrpcTransportOptions options_;
  const std::shared_ptr<GrpcBell> bell_;
  GrpcStreamService service_;
  std::unique_ptr<RpcServer> server_;
  std::string address_;
  std::map<LinkId, Link> links_;
  uint64_t next_link_ = 1;
  // Streams of links that are over, until gRPC is done with them.
  std::vector<Link> ended_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_GRPC_GRPC_ENGINE_H_
