#include "router/admission/service_counters.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::router {

TenantId ServiceCounters::Enter(std::string_view name) {
  const auto [it, inserted] =
      ids_.try_emplace(std::string(name), TenantId(next_id_));
  if (inserted) {
    ++next_id_;
    accounts_[it->second].name = it->first;
  }
  Account& account = accounts_.at(it->second);
  if (account.requests++ == 0) idle_.erase({account.service, it->second});
  return it->second;
}

void ServiceCounters::Leave(TenantId tenant) {
  Account& account = accounts_.at(tenant);
  BATON_CHECK(account.requests > 0);
  if (--account.requests > 0) return;
  idle_.emplace(account.service, tenant);
  ForgetIdle();
}

TenantId ServiceCounters::Find(std::string_view name) const {
  const auto it = ids_.find(ToAbsl(name));
  return it == ids_.end() ? TenantId() : it->second;
}

void ServiceCounters::RaiseFloor(uint64_t service) {
  floor_ = std::max(floor_, service);
}

void ServiceCounters::Lift(TenantId tenant) {
  Account& account = accounts_.at(tenant);
  account.service = std::max(account.service, floor_);
}

void ServiceCounters::Charge(TenantId tenant, uint64_t tokens) {
  accounts_.at(tenant).service += tokens;
}

void ServiceCounters::Refund(TenantId tenant, uint64_t tokens) {
  uint64_t& service = accounts_.at(tenant).service;
  service -= std::min(service, tokens);
}

void ServiceCounters::ForgetIdle() {
  while (!idle_.empty() &&
         (idle_.size() > max_idle_ || idle_.begin()->first <= floor_)) {
    const auto account = accounts_.extract(idle_.begin()->second);
    ids_.erase(account.mapped().name);
    idle_.erase(idle_.begin());
  }
}

}  // namespace baton::router
