#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "common/telemetry/log.h"

namespace baton {
namespace {

void Forward(gpr_log_func_args* message) {
  log::Debug("grpc {}:{}: {}", message->file, message->line, message->message);
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(Forward); }

}  // namespace baton
