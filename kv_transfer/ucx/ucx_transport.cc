#include "kv_transfer/ucx/ucx_transport.h"

#include "common/base/status_macros.h"
#include "kv_transfer/ucx/ucx_engine.h"

namespace baton::transfer {

absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(
    const UcxOptions& options) {
  auto engine = std::make_unique<UcxEngine>();
  BATON_RETURN_IF_ERROR(engine->Start(options));
  return engine;
}

}  // namespace baton::transfer
