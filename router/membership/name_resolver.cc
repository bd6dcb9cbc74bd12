#include "router/membership/name_resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <set>

#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::router {
namespace {

std::set<std::string> AddressesOf(const addrinfo* list, int family,
                                  uint16_t port) {
  std::set<std::string> addresses;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    char host[NI_MAXHOST];
    if (item->ai_family != family ||
        getnameinfo(item->ai_addr, item->ai_addrlen, host, sizeof(host),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    addresses.insert(HostPort{host, port}.ToString());
  }
  return addresses;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveName(const std::string& name) {
  BATON_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(name));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int error = getaddrinfo(target.host.c_str(), nullptr, &hints, &raw);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw,
                                                                &freeaddrinfo);
  if (error != 0) {
    return absl::UnavailableError(
        StrCat(target.host, ": cannot resolve: ", gai_strerror(error)));
  }
  std::set<std::string> addresses =
      AddressesOf(list.get(), AF_INET, target.port);
  if (addresses.empty()) {
    addresses = AddressesOf(list.get(), AF_INET6, target.port);
  }
  return std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace baton::router
