#include "common/rpc/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <string>
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

void ForwardProtobuf(google::protobuf::LogLevel, const char* file, int line,
                     const std::string& message) {
  log::Debug("protobuf {}:{}: {}", file, line, message);
}

}  // namespace

void RouteGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(Forward);
    google::protobuf::SetLogHandler(ForwardProtobuf);
  });
}

uint64_t FailedTlsHandshakes() { return failed_handshakes.load(); }

}  // namespace baton
