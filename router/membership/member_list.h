#ifndef BATON_ROUTER_MEMBERSHIP_MEMBER_LIST_H_
#define BATON_ROUTER_MEMBERSHIP_MEMBER_LIST_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "router/routing/worker_view.h"

namespace baton::router {

// Which addresses are workers now: the union of what every configured name
// resolved to last. Names whose resolution fails keep what they had. Pure; not
// thread-safe.
class MemberList {
 public:
  struct Member {
    WorkerIndex index;
    v1::WorkerRole role = v1::WORKER_ROLE_UNSPECIFIED;
    std::string address;
  };
  struct Change {
    std::vector<Member> added;
    std::vector<WorkerIndex> gone;  // no name leads to them any more
    // Already members in the other role; ignored.
    std::vector<std::string> conflicts;
  };

  // `name` of `role` resolves to `addresses` from now on.
  Change Update(v1::WorkerRole role, const std::string& name,
                const std::vector<std::string>& addresses);

 private:
  struct Entry {
    Member member;
    std::set<std::string> names;
  };

  std::map<std::string, Entry> by_address_;
  uint32_t next_index_ = 1;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_MEMBER_LIST_H_
