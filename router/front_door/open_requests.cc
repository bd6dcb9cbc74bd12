#include "router/front_door/open_requests.h"

#include <chrono>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<void>> OpenRequests::Open(
    const std::string& client) {
  std::lock_guard lock(counts_->mutex);
  uint32_t& count = counts_->open[client];
  if (count >= counts_->limit) {
    absl::Status status = absl::ResourceExhaustedError(
        StrCat("requests: this client has too many open (allowed ",
               counts_->limit, ")"));
    AddRetryInfo(&status, kRetry);
    return status;
  }
  ++count;
  return std::shared_ptr<void>(nullptr,
                               [counts = counts_, client](std::nullptr_t) {
                                 std::lock_guard closing(counts->mutex);
                                 const auto it = counts->open.find(client);
                                 if (--it->second == 0) counts->open.erase(it);
                               });
}

size_t OpenRequests::clients() const {
  std::lock_guard lock(counts_->mutex);
  return counts_->open.size();
}

std::string_view HostOfPeer(std::string_view peer) {
  const size_t end = peer.rfind(':');
  return peer.starts_with("ip") ? peer.substr(0, end) : peer;
}

}  // namespace baton::router
