#include "router/membership/member_list.h"

#include <algorithm>

namespace baton::router {

MemberList::Change MemberList::Update(
    v1::WorkerRole role, const std::string& name,
    const std::vector<std::string>& addresses) {
  Change change;
  for (const std::string& address : addresses) {
    const auto [it, inserted] = by_address_.try_emplace(address);
    Entry& entry = it->second;
    if (inserted) {
      entry.member = {WorkerIndex(next_index_++), role, address};
      change.added.push_back(entry.member);
    } else if (entry.member.role != role) {
      change.conflicts.push_back(address);
      continue;
    }
    entry.names.insert(name);
  }
  for (auto it = by_address_.begin(); it != by_address_.end();) {
    Entry& entry = it->second;
    const bool named = std::find(addresses.begin(), addresses.end(),
                                 it->first) != addresses.end();
    if (entry.member.role == role && !named) entry.names.erase(name);
    if (entry.names.empty()) {
      change.gone.push_back(entry.member.index);
      it = by_address_.erase(it);
    } else {
      ++it;
    }
  }
  return change;
}

}  // namespace baton::router
