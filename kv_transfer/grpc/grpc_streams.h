#ifndef BATON_KV_TRANSFER_GRPC_GRPC_STREAMS_H_
#define BATON_KV_TRANSFER_GRPC_GRPC_STREAMS_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "kv_transfer/grpc/grpc_pipe.h"
#include "proto/kv_link.grpc.pb.h"

namespace baton::transfer {

// A stream that this side opens. Destroy it, when finished, on a thread of
// one's own: a channel must not be destroyed on gRPC's.
std::unique_ptr<GrpcPipe> OpenGrpcStream(const std::string& address,
                                         const ChannelOptions& options,
                                         std::shared_ptr<GrpcBell> bell);

// Takes the streams that peers open. Thread-safe.
class GrpcStreamService final : public v1::KvLink::CallbackService {
 public:
  GrpcStreamService(size_t max_streams, std::shared_ptr<GrpcBell> bell);
  // After the server was shut down; arrivals nobody took are closed.
  ~GrpcStreamService() override;

  grpc::ServerBidiReactor<v1::LinkPiece, v1::LinkPiece>* Link(
      grpc::CallbackServerContext* context) override;

  // Streams since the last call; the caller owns them, and gives each back
  // with Forget when it is finished.
  std::vector<std::unique_ptr<GrpcPipe>> TakeArrivals();
  void Forget(size_t streams);
  // New streams are refused from now on.
  void Stop();

 private:
  const size_t max_streams_;
  const std::shared_ptr<GrpcBell> bell_;
  std::mutex mutex_;
  size_t streams_ = 0;                               // mutex_
  bool stopped_ = false;                             // mutex_
  std::vector<std::unique_ptr<GrpcPipe>> arrivals_;  // mutex_
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_GRPC_GRPC_STREAMS_H_
