#ifndef BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_
#define BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::transfer {

// A numeric IP address and port.
struct UcxSocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

// "ucx:10.0.0.7:4791" or "ucx:[fe80::7]:4791". INVALID_ARGUMENT for anything
// that is not exactly of this form, names included.
absl::StatusOr<UcxSocketAddress> ParseUcxAddress(std::string_view address);
std::string FormatUcxAddress(const sockaddr* address);

// The address of a network device with port 0: of the first of `devices`
// (names separated by commas, perhaps with ":port" as UCX has it) that is an
// interface, or else of the first interface that is not loopback, if any.
// NOT_FOUND names the devices.
absl::StatusOr<UcxSocketAddress> DeviceAddress(std::string_view devices);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_
