#include "common/telemetry/admin_server.h"

#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr auto kTouchInterval = std::chrono::milliseconds(2);

struct Response {
  int code = 200;
  std::string_view reason = "OK";
  std::string body = "ok\n";
};

void Send(mg_connection* connection, const Response& response, bool head) {
  const std::string header =
      StrCat("HTTP/1.1 ", response.code, " ", response.reason,
             "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8"
             "\r\nContent-Length: ",
             response.body.size(), "\r\nConnection: close\r\n\r\n",
             head ? std::string_view() : std::string_view(response.body));
  mg_write(connection, header.data(), header.size());
}

int DropLibraryMessage(const mg_connection*, const char*) { return 1; }

void InitLibraryOnce() {
  static const unsigned features = mg_init_library(0);
  static_cast<void>(features);
}

// Opens a connection and closes it.
void Touch(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found) != 0) {
    return;
  }
  const int fd =
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    connect(fd, found->ai_addr, found->ai_addrlen);
    close(fd);
  }
  freeaddrinfo(found);
}

// mg_stop alone waits until the accepting thread next looks up, which it does
// every two seconds and for every connection.
void Stop(mg_context* context, const std::string& address) {
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    mg_stop(context);
    stopped = true;
  });
  const auto own = ParseHostPort(address);
  while (own.ok() && !stopped) {
    Touch(*own);
    std::this_thread::sleep_for(kTouchInterval);
  }
  stopper.join();
}

}  // namespace

AdminServer::AdminServer(Options options) : options_(std::move(options)) {}

AdminServer::~AdminServer() {
  if (context_ != nullptr) Stop(context_, address_);
}

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(
    Options options) {
  BATON_ASSIGN_OR_RETURN(HostPort asked, ParseHostPort(options.address));
  HostPort bound = asked;
  if (asked.host == "localhost") bound.host = "127.0.0.1";
  std::unique_ptr<AdminServer> server(new AdminServer(std::move(options)));

  InitLibraryOnce();
  const std::string port = bound.ToString();
  const char* settings[] = {"listening_ports",
                            port.c_str(),
                            "num_threads",
                            "4",
                            "request_timeout_ms",
                            "10000",
                            "max_request_size",
                            "8192",
                            "enable_keep_alive",
                            "no",
                            nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = DropLibraryMessage;
  server->context_ = mg_start(&callbacks, server.get(), settings);
  if (server->context_ == nullptr) {
    BATON_RETURN_IF_ERROR(ListenError(bound));
    return absl::InternalError(
        StrCat(port, ": cannot listen: the HTTP server did not start"));
  }
  mg_server_port ports[1]{};
  if (mg_get_server_ports(server->context_, 1, ports) == 1) {
    bound.port = static_cast<uint16_t>(ports[0].port);
  }
  server->address_ = bound.ToString();
  mg_set_request_handler(server->context_, "/", Handle, server.get());
  return server;
}

int AdminServer::Handle(mg_connection* connection, void* self) {
  const Options& options = static_cast<AdminServer*>(self)->options_;
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string_view method = request->request_method;
  const std::string_view path = request->local_uri;
  const bool head = method == "HEAD";

  Response response;
  if (method != "GET" && !head) {
    response = {405, "Method Not Allowed", "only GET and HEAD\n"};
  } else if (path == "/metrics") {
    response.body = options.metrics();
  } else if (path == "/readyz" || path == "/livez") {
    const auto& probe = path == "/readyz" ? options.ready : options.live;
    const absl::Status status = probe ? probe() : absl::OkStatus();
    if (!status.ok()) {
      response = {503, "Service Unavailable", StrCat(status.message(), "\n")};
    }
  } else {
    response = {404, "Not Found", "try /metrics, /livez or /readyz\n"};
  }
  Send(connection, response, head);
  return response.code;
}

}  // namespace baton
