#include "kv_transfer/ucx/ucx_transport.h"

#include <utility>

#include "common/base/status_macros.h"
#include "kv_transfer/ucx/ucx_engine.h"

namespace baton::transfer {

absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(
    const UcxOptions& options) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<UcxWorker> worker,
                         UcxWorker::Create(options));
  auto engine = std::make_unique<UcxEngine>(std::move(worker));
  BATON_RETURN_IF_ERROR(engine->Start());
  return engine;
}

}  // namespace baton::transfer
