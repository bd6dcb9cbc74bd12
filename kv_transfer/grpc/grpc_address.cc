#include "kv_transfer/grpc/grpc_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "common/base/strings.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {
namespace {

constexpr std::string_view kPrefix = "grpc:";

bool IsNumeric(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Empty when the interface does not have one of the family.
std::string HostOf(const ifaddrs& interface, int family) {
  const sockaddr* address = interface.ifa_addr;
  if (address == nullptr || address->sa_family != family ||
      (interface.ifa_flags & IFF_UP) == 0 ||
      (interface.ifa_flags & IFF_LOOPBACK) != 0) {
    return "";
  }
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
  // Link-local addresses say nothing to other machines.
  if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr)) return "";
  char host[NI_MAXHOST];
  const socklen_t length =
      family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return getnameinfo(address, length, host, sizeof(host), nullptr, 0,
                     NI_NUMERICHOST) == 0
             ? host
             : "";
}

}  // namespace

absl::StatusOr<HostPort> ParseGrpcAddress(std::string_view address) {
  if (address.size() <= kMaxAddressBytes && address.starts_with(kPrefix)) {
    auto parsed = ParseHostPort(address.substr(kPrefix.size()));
    if (parsed.ok() && parsed->port != 0 && IsNumeric(parsed->host)) {
      return parsed;
    }
  }
  return absl::InvalidArgumentError(
      "address: not one of a grpc transport (expected grpc:IP:PORT)");
}

std::string FormatGrpcAddress(const HostPort& address) {
  return StrCat(kPrefix, address.ToString());
}

HostPort ReachableAddress(const HostPort& bound) {
  const bool ipv6 = bound.host == "::";
  if (!ipv6 && bound.host != "0.0.0.0") return bound;
  HostPort result{ipv6 ? "::1" : "127.0.0.1", bound.port};
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return result;
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    std::string host = HostOf(*i, ipv6 ? AF_INET6 : AF_INET);
    if (host.empty()) continue;
    result.host = std::move(host);
    break;
  }
  freeifaddrs(interfaces);
  return result;
}

}  // namespace baton::transfer
