#include "common/worker/session_table.h"

#include <algorithm>

#include "absl/status/status.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxRouterIdBytes = 128;

absl::Status CheckForm(const v1::RouterHello& hello) {
  if (hello.router_epoch() == 0) {
    return absl::InvalidArgumentError("hello.router_epoch: must not be 0");
  }
  if (hello.session() == 0) {
    return absl::InvalidArgumentError("hello.session: must not be 0");
  }
  if (hello.router_id().size() > kMaxRouterIdBytes) {
    return absl::InvalidArgumentError(
        StrCat("hello.router_id: got ", hello.router_id().size(),
               " bytes, allowed 0..", kMaxRouterIdBytes));
  }
  if (hello.protocol_min() > kMaxSessionProtocol ||
      hello.protocol_max() < kMinSessionProtocol) {
    return absl::FailedPreconditionError(
        StrCat("hello.protocol: the router speaks ", hello.protocol_min(), "..",
               hello.protocol_max(), ", this worker ", kMinSessionProtocol,
               "..", kMaxSessionProtocol));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SessionTable::Admission> SessionTable::Admit(
    const v1::RouterHello& hello) {
  if (absl::Status form = CheckForm(hello); !form.ok()) return form;
  const RouterEpoch epoch(hello.router_epoch());
  auto it = routers_.find(epoch);
  if (it != routers_.end() && hello.session() <= it->second.highest) {
    return absl::AbortedError(StrCat("hello.session: got ", hello.session(),
                                     ", fenced by session ",
                                     it->second.highest));
  }
  const bool replaces = it != routers_.end() && it->second.session.has_value();
  if (!replaces && alive_.size() >= max_sessions_) {
    return absl::ResourceExhaustedError(
        StrCat("this worker has ", max_sessions_, " router sessions"));
  }
  if (it == routers_.end()) {
    if (routers_.size() >= 2 * max_sessions_) ForgetOldest();
    it = routers_.emplace(epoch, Router{}).first;
  }
  Router& router = it->second;
  Admission admission;
  admission.session = SessionId(next_session_++);
  admission.protocol = std::min(hello.protocol_max(), kMaxSessionProtocol);
  admission.fenced = router.session;
  if (router.session.has_value()) alive_.erase(*router.session);
  router = {hello.session(), admission.session, admission.session.value()};
  alive_[admission.session] = epoch;
  return admission;
}

void SessionTable::End(SessionId session) {
  auto it = alive_.find(session);
  if (it == alive_.end()) return;
  routers_.at(it->second).session.reset();
  alive_.erase(it);
}

void SessionTable::ForgetOldest() {
  auto oldest = routers_.end();
  for (auto it = routers_.begin(); it != routers_.end(); ++it) {
    if (it->second.session.has_value()) continue;
    if (oldest == routers_.end() || it->second.seen < oldest->second.seen) {
      oldest = it;
    }
  }
  if (oldest != routers_.end()) routers_.erase(oldest);
}

}  // namespace baton
