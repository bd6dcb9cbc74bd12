#include "router/membership/membership.h"

#include <utility>

#include "common/base/random_bytes.h"
#include "common/telemetry/log.h"
#include "router/membership/name_resolver.h"

namespace baton::router {

Membership::Membership(MembershipOptions options, EventLoop* loop,
                       std::function<void(Event)> sink)
    : options_(std::move(options)), loop_(loop), jitter_(RandomNonZero64()) {
  context_.options = options_.link;
  context_.loop = loop_;
  context_.streams = &streams_;
  context_.sink = std::move(sink);
}

Membership::~Membership() { streams_.WaitUntilEmpty(); }

void Membership::Start() {
  for (const std::string& name : options_.prefill) {
    Resolve(v1::WORKER_ROLE_PREFILL, name);
  }
  for (const std::string& name : options_.decode) {
    Resolve(v1::WORKER_ROLE_DECODE, name);
  }
}

void Membership::Send(SendToPrefill action) {
  if (WorkerLink* link = Find(action.worker)) {
    link->Send(std::move(action.command));
  }
}

void Membership::Send(SendToDecode action) {
  if (WorkerLink* link = Find(action.worker)) {
    link->Send(std::move(action.command));
  }
}

void Membership::Close(const CloseSession& action) {
  WorkerLink* link = Find(action.worker);
  if (link == nullptr) return;
  if (action.reopen) {
    link->Restart(absl::FailedPreconditionError(action.reason));
  } else {
    log::Warn("an address of a worker is not used: {}", action.reason);
    link->Hold();
  }
}

void Membership::Open(const OpenSession& action) {
  if (WorkerLink* link = Find(action.worker)) link->Start();
}

void Membership::Stop() {
  *alive_ = false;
  links_.clear();
}

void Membership::Resolve(v1::WorkerRole role, const std::string& name) {
  resolver_.Post([this, role, name, alive = alive_] {
    auto addresses = ResolveName(name);
    loop_->Post([this, role, name, alive, addresses = std::move(addresses)] {
      if (*alive) Resolved(role, name, addresses);
    });
  });
}

void Membership::Resolved(
    v1::WorkerRole role, const std::string& name,
    const absl::StatusOr<std::vector<std::string>>& addresses) {
  loop_->PostAt(MonotonicNow() + jitter_.Spread(options_.resolve_interval),
                [this, role, name, alive = alive_] {
                  if (*alive) Resolve(role, name);
                });
  std::string& error = resolve_errors_[name];
  if (!addresses.ok()) {
    if (error != addresses.status().message()) {
      error = std::string(addresses.status().message());
      log::Warn("{}", error);
    }
    return;
  }
  error.clear();
  const MemberList::Change change = members_.Update(role, name, *addresses);
  for (const std::string& address : change.conflicts) {
    log::Error("{}: is both a prefill and a decode worker; the first counts",
               address);
  }
  for (const MemberList::Member& member : change.added) {
    auto link = WorkerLink::Make(&context_, member);
    WorkerLink* started = link.get();
    links_.emplace(member.index, std::move(link));
    context_.sink(WorkerAdded{member.index, member.role, member.address});
    started->Start();
  }
  for (const WorkerIndex index : change.gone) {
    WorkerLink* link = Find(index);
    if (link == nullptr) continue;
    link->Retire([this, index] {
      loop_->Post([this, index, alive = alive_] {
        if (!*alive || links_.erase(index) == 0) return;
        context_.sink(WorkerRemoved{index});
      });
    });
  }
}

WorkerLink* Membership::Find(WorkerIndex worker) {
  const auto it = links_.find(worker);
  return it == links_.end() ? nullptr : it->second.get();
}

}  // namespace baton::router
