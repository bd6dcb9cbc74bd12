#ifndef BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_
#define BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "router/admission/deadline_set.h"

namespace baton::router {

// Choices of one request that wait for a place; unique per router process.
using WorkId = StrongId<struct WorkIdTag, uint64_t>;

struct AdmissionLimits {
  uint64_t max_requests = 1024;
  uint64_t max_tokens = 4'000'000;  // prompt tokens waiting
  Duration max_age = std::chrono::seconds(120);
};

// FIFO within priority, 0 first. New work is admitted within limits; work that
// was admitted before (refused by a decode worker, or to be replayed) comes
// back to the place that its request's arrival gives it, without limit: its
// number is bounded by the requests that run. Pure; not thread-safe.
class AdmissionQueue {
 public:
  struct Item {
    WorkId id;
    int priority = 1;
    uint64_t arrival = 0;  // rises with every request of this router
    uint64_t tokens = 0;
    MonotonicTime since;     // start of its waiting
    bool may_expire = true;  // not for work that has run already
  };

  struct Position {
    int priority = 0;
    uint64_t arrival = 0;
    WorkId id;
    friend auto operator<=>(const Position&, const Position&) = default;
  };

  explicit AdmissionQueue(AdmissionLimits limits);

  // RESOURCE_EXHAUSTED with RetryInfo when the queue is full. An empty queue
  // takes a request of any size.
  absl::Status Admit(const Item& item, MonotonicTime now);
  void Return(const Item& item);
  // False if it is not here.
  bool Remove(WorkId id);

  // The first item after `position` in the order of service, or nullptr;
  // without a position the head.
  const Item* Next(const std::optional<Position>& position) const;
  static Position PositionOf(const Item& item) {
    return {item.priority, item.arrival, item.id};
  }

  // Takes out one item that has waited longer than max_age.
  std::optional<Item> PopExpired(MonotonicTime now);
  MonotonicTime next_expiry() const { return expiry_.earliest(); }
  // What an item that expired or was not admitted is told.
  absl::Status ExpiredError(MonotonicTime now) const;

  uint64_t size() const { return items_.size(); }
  uint64_t tokens() const { return tokens_; }

 private:
  void Insert(const Item& item);
  Duration RetryDelay(MonotonicTime now) const;

  const AdmissionLimits limits_;
  std::map<Position, Item> items_;
  absl::flat_hash_map<WorkId, Position> positions_;
  DeadlineSet<WorkId> expiry_;
  uint64_t tokens_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_
