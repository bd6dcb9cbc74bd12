#include "kv_transfer/grpc/grpc_transport.h"

#include <utility>

#include "common/base/status_macros.h"
#include "kv_transfer/grpc/grpc_engine.h"

namespace baton::transfer {

absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcTransportOptions& options) {
  auto engine = std::make_unique<GrpcEngine>(options);
  BATON_RETURN_IF_ERROR(engine->Start());
  return engine;
}

}  // namespace baton::transfer
