#ifndef BATON_ROUTER_MEMBERSHIP_MEMBERSHIP_H_
#define BATON_ROUTER_MEMBERSHIP_MEMBERSHIP_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/event_loop.h"
#include "router/admission/jitter.h"
#include "router/membership/member_list.h"
#include "router/membership/worker_link.h"
#include "router/request_flow/events.h"

namespace baton::router {

struct MembershipOptions {
  // host:port. A name stands for all its addresses and is resolved again and
  // again; an address that no name leads to any more is used until its session
  // ends.
  std::vector<std::string> prefill{};
  std::vector<std::string> decode{};
  Duration resolve_interval = std::chrono::seconds(5);  // and jitter
  LinkOptions link{};
};

// Knows the workers and keeps a session to each. Tells the sink, on the loop:
// WorkerAdded, SessionUp, PrefillMessage, DecodeMessage, SessionDown,
// WorkerRemoved. The sink may call Send and Close from within.
class Membership {
 public:
  // `loop` outlives the object and runs until its destructor has returned.
  Membership(MembershipOptions options, EventLoop* loop,
             std::function<void(Event)> sink);
  // After Stop(), not on the loop. Waits until gRPC is done with every session;
  // the loop then destroys what is left of them, as a channel must not be
  // destroyed on a thread of gRPC.
  ~Membership();

  // The rest: loop only.
  void Start();
  // Commands to workers without a session are dropped.
  void Send(SendToPrefill action);
  void Send(SendToDecode action);
  void Close(const CloseSession& action);
  void Open(const OpenSession& action);
  // Ends all sessions without telling the sink.
  void Stop();

 private:
  void Resolve(v1::WorkerRole role, const std::string& name);
  void Resolved(v1::WorkerRole role, const std::string& name,
                const absl::StatusOr<std::vector<std::string>>& addresses);
  WorkerLink* Find(WorkerIndex worker);

  const MembershipOptions options_;
  EventLoop* const loop_;
  StreamGroup streams_;
  LinkContext context_;
  MemberList members_;
  std::map<WorkerIndex, std::unique_ptr<WorkerLink>> links_;
  Jitter jitter_;
  std::map<std::string, std::string> resolve_errors_;  // name -> last error
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  EventLoop resolver_{"resolver"};
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_MEMBERSHIP_H_
