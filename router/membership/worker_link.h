#ifndef BATON_ROUTER_MEMBERSHIP_WORKER_LINK_H_
#define BATON_ROUTER_MEMBERSHIP_WORKER_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/event_loop.h"
#include "common/base/ids.h"
#include "common/rpc/tls_credentials.h"
#include "router/membership/backoff.h"
#include "router/membership/member_list.h"
#include "router/membership/stream_group.h"
#include "router/request_flow/events.h"

namespace baton::router {

struct LinkOptions {
  RouterEpoch router_epoch;
  std::string router_id;
  Duration hello_timeout = std::chrono::seconds(5);
  // A peer that stopped answering is given up after the sum of both.
  Duration keepalive_time = std::chrono::seconds(5);
  Duration keepalive_timeout = std::chrono::seconds(3);
  std::shared_ptr<const TlsCredentials> tls{};  // null: plain text
  Backoff::Options backoff;
};

// What all links of a router share. Outlives them.
struct LinkContext {
  LinkOptions options;
  EventLoop* loop = nullptr;
  StreamGroup* streams = nullptr;
  std::function<void(Event)> sink;
  uint64_t next_session = 1;
};

// Keeps a session to one worker: connects, says hello, checks the answer,
// passes events on (SessionUp, messages, SessionDown, in this order), and
// connects again after a pause when the session ends. Loop only.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;

  virtual void Start() = 0;
  // Ignored while no session is up.
  virtual void Send(v1::PrefillCommand command);
  virtual void Send(v1::DecodeCommand command);
  // Ends the session and connects again; sends SessionDown.
  virtual void Restart(const absl::Status& why) = 0;
  // Ends the session, if there is one, and opens none before Start().
  virtual void Hold() = 0;
  // No reconnect any more; `gone` runs when no session is up, perhaps at once,
  // and may destroy the link.
  virtual void Retire(std::function<void()> gone) = 0;

  static std::unique_ptr<WorkerLink> Make(LinkContext* context,
                                          MemberList::Member member);
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_WORKER_LINK_H_
