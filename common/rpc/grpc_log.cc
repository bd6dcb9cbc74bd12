#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <ctime>
#include <string_view>

#include "common/telemetry/log.h"

namespace baton {
namespace {

std::atomic<uint64_t> failed_handshakes{0};

void Forward(gpr_log_func_args* message) {
  if (std::string_view(message->message).starts_with("Handshake failed")) {
    failed_handshakes.fetch_add(1);
    static std::atomic<std::time_t> last{0};
    const std::time_t now = std::time(nullptr);
    if (last.exchange(now) != now) {
      log::Warn("audit: TLS: {}", message->message);
      return;
    }
  }
  log::Debug("grpc {}:{}: {}", message->file, message->line, message->message);
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(Forward); }

uint64_t FailedTlsHandshakes() { return failed_handshakes.load(); }

}  // namespace baton
