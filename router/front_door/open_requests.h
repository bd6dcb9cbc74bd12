#ifndef BATON_ROUTER_FRONT_DOOR_OPEN_REQUESTS_H_
#define BATON_ROUTER_FRONT_DOOR_OPEN_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace baton::router {

// Counts the open requests of each client, so that one alone cannot take all
// places. Thread-safe.
class OpenRequests {
 public:
  explicit OpenRequests(uint32_t limit) : counts_(std::make_shared<Counts>()) {
    counts_->limit = limit;
  }

  // The request is open until the result and its copies are gone.
  // RESOURCE_EXHAUSTED with RetryInfo when the client has as many as allowed.
  absl::StatusOr<std::shared_ptr<void>> Open(const std::string& client);

  // Clients with an open request.
  size_t clients() const;

 private:
  struct Counts {
    uint32_t limit = 0;
    std::mutex mutex;
    absl::flat_hash_map<std::string, uint32_t> open;  // mutex; none is zero
  };
  const std::shared_ptr<Counts> counts_;
};

// "ipv4:10.0.0.1:4711" without the port: all connections of a machine.
std::string_view HostOfPeer(std::string_view peer);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_OPEN_REQUESTS_H_
