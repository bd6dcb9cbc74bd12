#include "common/base/host_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxHostBytes = 253;

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(
      StrCat("expected host:port (got \"", text.substr(0, 300), "\")"));
}

absl::Status ErrnoStatus(int error, const std::string& message) {
  switch (error) {
    case EADDRINUSE:
      return absl::UnavailableError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InvalidArgumentError(message);
  }
}

}  // namespace

std::string HostPort::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? StrCat("[", host, "]:", port) : StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        StrCat("an IPv6 address needs brackets, as in [::1]:7000 (got \"",
               text.substr(0, 300), "\")"));
  }
  const bool clean =
      !host.empty() && host.size() <= kMaxHostBytes &&
      std::all_of(host.begin(), host.end(), absl::ascii_isgraph) &&
      host.find_first_of("/[],@\"'") == std::string_view::npos;
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      port.find_first_not_of("0123456789") == std::string_view::npos;
  uint32_t number = 0;
  if (!clean || !digits || !absl::SimpleAtoi(ToAbsl(port), &number) ||
      number > UINT16_MAX) {
    return Malformed(text);
  }
  return HostPort{std::string(host), static_cast<uint16_t>(number)};
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // All four numbers: "127.example" is a name.
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

absl::Status ListenError(const HostPort& address) {
  const std::string name = address.ToString();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (failure != 0) {
    return absl::InvalidArgumentError(
        StrCat(name, ": cannot listen: ", gai_strerror(failure)));
  }
  int error = 0;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = errno;
  } else {
    const int reuse = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(fd, 1) != 0) {
      error = errno;
    }
    close(fd);
  }
  freeaddrinfo(found);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, StrCat(name, ": cannot listen: ", strerror(error),
                                   " (errno ", error, ")"));
}

}  // namespace baton
