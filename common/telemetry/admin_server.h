#ifndef BATON_COMMON_TELEMETRY_ADMIN_SERVER_H_
#define BATON_COMMON_TELEMETRY_ADMIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct mg_connection;
struct mg_context;

namespace baton {

// The operator's HTTP port of a process:
//   GET /metrics  the text of `metrics`
//   GET /livez    200 "ok", or 503 and the reason why only a restart helps
//   GET /readyz   200 "ok", or 503 and the reason why it takes no new work
// Everything else is 404; other methods than GET and HEAD are 405.
class AdminServer {
 public:
  struct Options {
    // host:port; port 0 takes any free one. The host is an IP address or
    // "localhost".
    std::string address;
    std::function<std::string()> metrics;
    // Not OK = not ready; the message is the reason.
    std::function<absl::Status()> ready;
    // Not OK = a restart is wanted. Without it the process is alive.
    std::function<absl::Status()> live = nullptr;
  };

  // All functions are called on the server's threads, several at a time, until
  // the destructor returns. Errors name the address and carry errno's text.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(Options options);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // host:port actually bound.
  const std::string& address() const { return address_; }

 private:
  explicit AdminServer(Options options);
  static int Handle(mg_connection* connection, void* self);

  const Options options_;
  std::string address_;
  mg_context* context_ = nullptr;
};

}  // namespace baton

#endif  // BATON_COMMON_TELEMETRY_ADMIN_SERVER_H_
