#ifndef BATON_ROUTER_FRONT_DOOR_HELD_BACK_BUDGET_H_
#define BATON_ROUTER_FRONT_DOOR_HELD_BACK_BUDGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tokenizer/tokenizer.h"

namespace baton::router {

// Memory for answers that are held back until the best are known, and after
// that for their clients to read. Taken before the first token, for the most
// that it can become. A client gets at most half of what the others leave, so
// that none of them, nor a few, take all. Thread-safe.
class HeldBackBudget {
 public:
  // `on_change` gets what is added to and taken from the bytes in use, and
  // outlives everything that is reserved.
  HeldBackBudget(uint64_t limit, std::function<void(double)> on_change)
      : shared_(std::make_shared<Shared>()) {
    shared_->limit = limit;
    shared_->on_change = std::move(on_change);
  }

  // Reserved until the result and its copies are gone. INVALID_ARGUMENT with
  // `best_of` when the client would not get it of the empty budget,
  // RESOURCE_EXHAUSTED with RetryInfo when not of what is left.
  absl::StatusOr<std::shared_ptr<void>> Reserve(const std::string& client,
                                                uint64_t bytes);
  // RESOURCE_EXHAUSTED if Reserve would say so now. What never fits is OK: it
  // is told with all that is wrong with the request.
  absl::Status CheckRoom(const std::string& client, uint64_t bytes) const;

  uint64_t used() const;

 private:
  struct Shared {
    uint64_t limit = 0;
    std::function<void(double)> on_change;
    std::mutex mutex;
    uint64_t used = 0;                              // mutex
    absl::flat_hash_map<std::string, uint64_t> by;  // mutex; none is zero
    // With mutex held, of no more than half the limit.
    absl::Status CheckRoom(const std::string& client, uint64_t bytes) const;
  };
  const std::shared_ptr<Shared> shared_;
};

// Bytes of text that one token may become: invalid UTF-8 grows when it is
// replaced.
uint64_t LongestTokenText(const Tokenizer& tokenizer);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_HELD_BACK_BUDGET_H_
