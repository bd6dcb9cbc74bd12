#include "kv_transfer/ucx/ucx_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr std::string_view kScheme = "ucx:";
constexpr size_t kMaxLength = 128;

absl::Status Malformed() {
  return absl::InvalidArgumentError(
      "address: not one of a ucx transport (ucx:HOST:PORT)");
}

UcxSocketAddress Copy(const sockaddr* address) {
  UcxSocketAddress copy;
  copy.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                               : sizeof(sockaddr_in);
  std::memcpy(&copy.storage, address, copy.length);
  return copy;
}

UcxSocketAddress WithoutPort(const sockaddr* address) {
  UcxSocketAddress copy = Copy(address);
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&copy.storage)->sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in*>(&copy.storage)->sin_port = 0;
  }
  return copy;
}

bool Usable(const ifaddrs* entry) {
  return entry->ifa_addr != nullptr && (entry->ifa_flags & IFF_UP) != 0 &&
         entry->ifa_addr->sa_family == AF_INET;
}

}  // namespace

absl::StatusOr<UcxSocketAddress> ParseUcxAddress(std::string_view address) {
  if (address.size() > kMaxLength || !address.starts_with(kScheme)) {
    return Malformed();
  }
  address.remove_prefix(kScheme.size());
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return Malformed();
  std::string host(address.substr(0, colon));
  const std::string_view digits = address.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      port == 0) {
    return Malformed();
  }
  sockaddr_in v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1 &&
      host.size() == std::strlen(host.c_str())) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return Copy(reinterpret_cast<const sockaddr*>(&v4));
  }
  if (host.size() < 4 || host.front() != '[' || host.back() != ']') {
    return Malformed();
  }
  host = host.substr(1, host.size() - 2);
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1 ||
      host.size() != std::strlen(host.c_str())) {
    return Malformed();
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  return Copy(reinterpret_cast<const sockaddr*>(&v6));
}

std::string FormatUcxAddress(const sockaddr* address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
    return StrCat(kScheme, "[", host, "]:", ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
  inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
  return StrCat(kScheme, host, ":", ntohs(v4->sin_port));
}

absl::StatusOr<UcxSocketAddress> DeviceAddress(std::string_view devices) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) {
    return absl::UnavailableError("ucx: cannot list network interfaces");
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, freeifaddrs);
  const std::vector<std::string> names = absl::StrSplit(ToAbsl(devices), ',');
  for (const std::string& name : names) {
    const std::string device = name.substr(0, name.find(':'));
    for (const ifaddrs* entry = raw; entry; entry = entry->ifa_next) {
      if (Usable(entry) && device == entry->ifa_name) {
        return WithoutPort(entry->ifa_addr);
      }
    }
  }
  for (const ifaddrs* entry = raw; entry; entry = entry->ifa_next) {
    if (Usable(entry) && (entry->ifa_flags & IFF_LOOPBACK) == 0) {
      return WithoutPort(entry->ifa_addr);
    }
  }
  return absl::NotFoundError(StrCat(
      "ucx: no network interface with an address among '", devices, "'"));
}

}  // namespace baton::transfer
