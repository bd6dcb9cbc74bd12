#ifndef BATON_ROUTER_ADMISSION_SERVICE_COUNTERS_H_
#define BATON_ROUTER_ADMISSION_SERVICE_COUNTERS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"

namespace baton::router {

// A tenant while this router has something of it; never used twice.
using TenantId = StrongId<struct TenantIdTag, uint64_t>;

// The service that every tenant has had, in tokens: the virtual token counters
// (VTC) of Sheng et al., "Fairness in Serving Large Language Models", OSDI
// 2024. Whoever has the smallest counter is served next; a tenant that begins
// to wait is lifted to the smallest counter of those who wait already, so that
// nobody saves up service by being away, and debts are kept. Pure; not
// thread-safe.
//
// Bounded: tenants with requests, and `max_idle` without. An idle tenant is
// forgotten as soon as it owes nothing (its counter would be lifted anyway),
// and the one with the smallest debt when there are too many.
class ServiceCounters {
 public:
  explicit ServiceCounters(size_t max_idle) : max_idle_(max_idle) {}

  // A request of the tenant begins, and ends; the id is valid in between.
  TenantId Enter(std::string_view name);
  void Leave(TenantId tenant);
  // TenantId() when nothing is known of it.
  TenantId Find(std::string_view name) const;

  // The smallest counter of those who wait has become `service`.
  void RaiseFloor(uint64_t service);
  // The tenant begins to wait.
  void Lift(TenantId tenant);
  void Charge(TenantId tenant, uint64_t tokens);
  // Takes back a charge, down to 0.
  void Refund(TenantId tenant, uint64_t tokens);

  uint64_t service(TenantId tenant) const {
    return accounts_.at(tenant).service;
  }
  size_t active() const { return accounts_.size() - idle_.size(); }
  size_t tracked() const { return accounts_.size(); }

 private:
  struct Account {
    std::string name;
    uint64_t service = 0;
    uint64_t requests = 0;
  };

  void ForgetIdle();

  const size_t max_idle_;
  uint64_t floor_ = 0;
  uint64_t next_id_ = 1;
  absl::flat_hash_map<std::string, TenantId> ids_;
  absl::flat_hash_map<TenantId, Account> accounts_;
  std::set<std::pair<uint64_t, TenantId>> idle_;  // by service
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_SERVICE_COUNTERS_H_
