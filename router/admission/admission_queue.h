#ifndef BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_
#define BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "router/admission/deadline_set.h"
#include "router/admission/drain_estimate.h"
#include "router/admission/jitter.h"
#include "router/admission/service_counters.h"

namespace baton::router {

// Choices of one request that wait for a place; unique per router process.
using WorkId = StrongId<struct WorkIdTag, uint64_t>;

inline constexpr int kPriorityBands = 3;  // 0 = high, 1 = normal, 2 = low

struct AdmissionLimits {
  uint64_t max_requests = 1024;
  uint64_t max_tokens = 4'000'000;  // prompt tokens waiting
  Duration max_age = std::chrono::seconds(120);
  uint64_t max_bytes = 256 << 20;  // of the requests waiting
  // So many tokens of service more than another tenant who waits, and a
  // tenant's work counts one band lower.
  uint64_t priority_allowance = 32768;
  size_t max_idle_tenants = 10'000;  // whose debts are remembered
};

// Where requests wait, and the only place where it is decided who is next:
//  1. bands of priority, high first. A band is a privilege within the tenant's
//     own share: per `priority_allowance` tokens of service that the tenant
//     has had more than the least served one who waits, its work counts one
//     band lower, so that nobody can push the others aside with high priority;
//  2. within a band the tenant that has been served least (ServiceCounters);
//  3. within a tenant and band the earliest deadline, then the first to come.
// Work that no worker has room for at its turn is passed over, not waited for.
//
// New work is admitted within limits. When the queue is full, it displaces
// work of the tenant with the largest share of the queue if its own tenant has
// less, or work of its own tenant of a lower band; else it is refused. Work
// that was admitted before (refused by a decode worker, or to be replayed)
// comes back without limit: its number is bounded by the requests that run.
// Pure; not thread-safe.
class AdmissionQueue {
 public:
  struct Item {
    WorkId id;
    int priority = 1;
    uint64_t arrival = 0;  // rises with every request of this router
    uint64_t tokens = 0;
    MonotonicTime since;     // start of its waiting
    bool may_expire = true;  // not for work that has run already
    TenantId tenant;         // of Enter()
    MonotonicTime deadline = kNever;
    uint64_t bytes = 0;
  };

  explicit AdmissionQueue(AdmissionLimits limits, uint64_t jitter_seed = 0);

  // A request of the tenant lives from Enter to Leave, longer than its work.
  TenantId Enter(std::string_view tenant) { return counters_.Enter(tenant); }
  void Leave(TenantId tenant) { counters_.Leave(tenant); }
  // Service that the tenant has had, or has been charged for nothing.
  void Charge(TenantId tenant, uint64_t tokens);
  void Refund(TenantId tenant, uint64_t tokens);

  // RESOURCE_EXHAUSTED with RetryInfo when the queue is full; otherwise the
  // item is in. What it displaced is out and appended. An empty queue takes a
  // request of any size.
  absl::Status Admit(const Item& item, MonotonicTime now,
                     std::vector<Item>* displaced);
  // Whether it would, of an item or of a larger one of the same tenant. The
  // tenant may be TenantId(): one without work.
  absl::Status CheckRoom(const Item& item, MonotonicTime now);
  void Return(const Item& item, MonotonicTime now);
  // Did not start. False if it is not here.
  bool Remove(WorkId id, MonotonicTime now);
  // Starts; its tenant is charged its tokens.
  void Take(WorkId id, MonotonicTime now);
  // Prompt tokens of work that was taken have been computed.
  void Served(uint64_t tokens, MonotonicTime now) {
    drain_.Served(tokens, now);
  }
  // The time until then says nothing about the workers: see DrainEstimate.
  void StoodStill(MonotonicTime until) { drain_.StoodStill(until); }
  // Prompt tokens per second that the workers are predicted to compute, 0 if
  // that is not known: what counts until enough was seen.
  void Expect(double tokens_per_s) { expected_rate_ = tokens_per_s; }

  // One look through the queue in the order of service. Items may be removed
  // meanwhile; what is added may be missed.
  class Pass {
   public:
    explicit Pass(const AdmissionQueue* queue) : queue_(queue) {}
    // Each item once; nullptr at the end. Valid until it is removed.
    const Item* Next();

   private:
    using Cursor = std::pair<int, TenantId>;
    friend class AdmissionQueue;
    const AdmissionQueue* const queue_;
    absl::flat_hash_map<Cursor, std::tuple<MonotonicTime, uint64_t, WorkId>>
        cursors_;  // the last key that was returned
  };

  // All that wait, in order of their ids.
  std::vector<WorkId> Ids() const;

  // Takes out one item that has waited longer than max_age.
  std::optional<Item> PopExpired(MonotonicTime now);
  MonotonicTime next_expiry() const { return expiry_.earliest(); }

  // RESOURCE_EXHAUSTED when less than `needed` would be left of the item's time
  // at its turn, should the cluster take half as long again for everything: a
  // queue as long as its deadlines allow makes all of them late as soon as
  // anything takes longer. Counts what is surely served first, that is the
  // tenant's own earlier work and as much of every other tenant's as fair turns
  // give them meanwhile. Nothing is refused that nothing is ahead of.
  absl::Status CheckDeadline(const Item& item, Duration needed,
                             MonotonicTime now);

  // What an item that was displaced or expired is told.
  absl::Status DisplacedError(MonotonicTime now);
  absl::Status ExpiredError(MonotonicTime now);
  // When the queue as it is now will have drained, with jitter.
  Duration RetryDelay(MonotonicTime now);

  uint64_t size() const { return total_.items; }
  uint64_t size(int priority) const { return band_sizes_[priority]; }
  uint64_t tokens() const { return total_.tokens; }
  uint64_t bytes() const { return total_.bytes; }
  const ServiceCounters& tenants() const { return counters_; }

 private:
  using WorkKey = std::tuple<MonotonicTime, uint64_t, WorkId>;
  struct Amount {
    uint64_t items = 0;
    uint64_t tokens = 0;
    uint64_t bytes = 0;
    void Add(const Item& item);
    void Subtract(const Item& item);
  };
  struct TenantWork {
    std::array<std::map<WorkKey, WorkId>, kPriorityBands> bands;
    std::array<uint64_t, kPriorityBands> band_tokens{};
    Amount total;
  };

  static WorkKey KeyOf(const Item& item) {
    return {item.deadline, item.arrival, item.id};
  }
  void Reorder(TenantId tenant, uint64_t service_before);
  void Insert(const Item& item, MonotonicTime now);
  Item Erase(WorkId id, MonotonicTime now);
  // The largest part that this is of any limit.
  double ShareOf(const Amount& amount) const;
  // Of the tenant's own work, prompt tokens that are served before the item.
  uint64_t TokensAhead(const TenantWork& own, const Item& item) const;
  // Why a queue with so much has no room for it, or "".
  std::string WhyFull(const Item& item, const Amount& total) const;
  // What has to go to make room for `item`; empty when nothing may.
  std::vector<WorkId> RoomFor(const Item& item) const;
  // Tokens per second, > 0.
  std::optional<double> DrainRate(MonotonicTime now);
  uint64_t LeastService() const;  // of those who wait
  absl::Status Exhausted(std::string_view why, MonotonicTime now);

  const AdmissionLimits limits_;
  Jitter jitter_;
  ServiceCounters counters_;
  DrainEstimate drain_;
  double expected_rate_ = 0;
  absl::flat_hash_map<WorkId, Item> items_;
  absl::flat_hash_map<TenantId, TenantWork> waiting_;
  // Tenants with work in a band, the least served first.
  std::array<std::set<std::pair<uint64_t, TenantId>>, kPriorityBands> order_;
  std::set<std::pair<double, TenantId>> by_share_;
  DeadlineSet<WorkId> expiry_;
  std::array<uint64_t, kPriorityBands> band_sizes_{};
  Amount total_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_ADMISSION_QUEUE_H_
