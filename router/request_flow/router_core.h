#ifndef BATON_ROUTER_REQUEST_FLOW_ROUTER_CORE_H_
#define BATON_ROUTER_REQUEST_FLOW_ROUTER_CORE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/generation.pb.h"
#include "router/admission/admission_queue.h"
#include "router/admission/deadline_set.h"
#include "router/admission/jitter.h"
#include "router/admission/retry_budget.h"
#include "router/admission/service_times.h"
#include "router/request_flow/events.h"
#include "router/request_flow/progress_watch.h"
#include "router/request_flow/request_flow.h"
#include "router/request_flow/request_outline.h"
#include "router/request_flow/router_options.h"
#include "router/request_flow/worker_table.h"
#include "router/routing/policy.h"

namespace baton::router {

// Everything one router decides: queue, workers, and the flow of each request.
// A single-threaded state machine without thread, clock or socket; the driver
// (or a simulation) hands in events in the order they happened, with a `now`
// that never goes back, and carries out the actions in order.
//
// Guarantees, for any sequence of events:
//  - every ClientRequest gets exactly one FinishClient, at the latest at the
//    first Handle() at or after its deadline;
//  - per choice the emitted tokens have indices 0, 1, 2, ... without gap or
//    repeat, whatever the number of attempts;
//  - when a request has finished, every worker with a live session that held
//    something for it has been told to let go, or said itself that it has;
//  - commands go only to workers whose session is up.
class RouterCore {
 public:
  RouterCore(RouterOptions options, std::unique_ptr<RoutingPolicy> policy,
             MonotonicTime now);

  Actions Handle(Event event, MonotonicTime now);
  // Not OK, and counted, only if Handle would refuse every such request now.
  absl::Status RefuseEarly(const RequestOutline& outline, MonotonicTime now);
  // When the next Tick is due; kNever if nothing waits for time.
  MonotonicTime NextDeadline() const;

  // OK when new requests would be served; otherwise why not.
  absl::Status Ready(MonotonicTime now) const;
  bool draining() const { return draining_; }
  RouterCounters counters() const;
  // State, hello, load and last error of every worker, by index.
  std::vector<v1::WorkerInfo> Workers() const;
  uint32_t MaxContextTokens() const { return workers_.MaxContextTokens(); }

 private:
  struct Entry {
    RequestFlow flow;
    TenantId tenant;
    uint64_t arrival = 0;
    uint64_t bytes = 0;
    std::set<WorkId> waiting;
    bool counted_waiting = false;
    bool prefill_learnt = false;
  };
  struct WaitingWork {
    RequestId request;
    MonotonicTime since;
    Work work;
  };
  // What an open attempt counts for in the views of its workers.
  struct Booking {
    RequestId request;
    uint32_t choices = 0;  // that take a place in the batch
    bool computing = true;
    bool landed = false;
    MonotonicTime started{};
    bool judged = false;  // others waited, and it was expected to be in time
  };

  void On(ClientRequest event);
  void On(ClientCancelled event);
  void On(WorkerAdded event);
  void On(WorkerRemoved event);
  void On(SessionUp event);
  void On(SessionDown event);
  void On(PrefillMessage message);
  void On(DecodeMessage message);
  void On(Drain event);
  void On(Terminate event);
  void On(Tick event);

  void OnLoad(WorkerView* worker, const v1::WorkerLoad& load);
  // Checks the session's numbering, then hands the event on.
  template <class Message>
  void OnMessage(Message message);
  void OnEvent(WorkerView* worker, v1::PrefillEvent event);
  void OnEvent(WorkerView* worker, v1::DecodeEvent event);
  void OnStepTokens(WorkerView* worker, v1::StepTokens step);
  void OnRefused(const WorkerView& worker, const v1::Refused& refused);
  void OnAttemptFailure(WorkerView* worker, const v1::AttemptFailure& failed);
  // The attempt has got its place: those that refused the request lately need
  // not keep room for it.
  void WithdrawElsewhere(const Attempt& attempt);
  // The flow of an open attempt that runs on this worker, or nullptr after
  // counting the message as stale.
  RequestFlow* FlowOf(AttemptId attempt, const WorkerView& worker);

  // `blamed`: the worker's breaker counts it, if the worker was ready.
  void LoseSession(WorkerView* worker, const absl::Status& why,
                   bool blamed = true);
  void Break(WorkerView* worker, const absl::Status& why);
  // Only the newest session to a process is used: it has fenced the others.
  void HoldTwins(WorkerView* opened);
  void CheckSilent(WorkerIndex worker);
  // Judgement of workers; `attempt` is open.
  void Succeeded(WorkerView* worker);
  void Blame(WorkerView* worker, const Attempt& attempt, std::string_view why);
  void BlameTransfer(const Attempt& attempt, std::string_view why);
  void BlameFor(const Attempt& attempt, WorkerView* sender,
                const v1::AttemptFailure& failed);
  void BlameForStall(const Attempt& attempt);
  void BreakerMoved(WorkerView* worker);
  // A request of the router's own, for a half-open worker without work.
  void Probe(WorkerIndex index);
  bool IsProbe(RequestId request) const { return probes_.contains(request); }
  void DropActionsOfProbes();

  // Books what the flow of a request has done since the last call; `sender`
  // said what it did it for.
  void Settle(RequestId request, WorkerView* sender = nullptr);
  void SettleAttempt(AttemptId attempt, WorkerView* sender);
  void Unbook(const Attempt& attempt, MonotonicTime deadline);
  void JudgePace(const Attempt& attempt, const Booking& booking,
                 MonotonicTime deadline);
  // What its prefill took, as soon as that is known.
  void LearnPrefill(Entry* entry);
  // The rest, at its end.
  void LearnFrom(const Entry& entry);
  void CountWaiting(Entry* entry, bool waiting);
  void Enqueue(Entry* entry, Work work);
  void EndRequest(RequestId request, absl::Status status);
  // Counts.
  absl::Status Reject(Rejection why, absl::Status status);
  absl::Status RejectHopeless(absl::Status status);  // of MayWait

  // OK, or why new work is refused. It takes `needed` from its start to its
  // end.
  absl::Status Admit(const AdmissionQueue::Item& item,
                     const PlacementRequest& placement, Duration needed);
  // The part of it that does not depend on how full the queue is.
  absl::Status CheckNew(const AdmissionQueue::Item& item,
                        const PlacementRequest& placement, Duration needed);
  // OK, or why work that waits since `since` has to end now. Schedules the next
  // sweep when its waiting has an end of its own.
  absl::Status MayWait(const PlacementRequest& placement, MonotonicTime since);
  void SweepQueue();
  void DispatchQueue();
  // How long it will most likely take, if others wait for the place and that
  // is known (ServiceTimes).
  std::optional<Duration> Judge(const AdmissionQueue::Item& item,
                                const WaitingWork& waiting) const;
  // RESOURCE_EXHAUSTED with RetryInfo when it would not end in time.
  absl::Status CheckInTime(const AdmissionQueue::Item& item,
                           std::optional<Duration> needed);
  void Start(const AdmissionQueue::Item& item, const Candidate& place,
             bool judged);
  void NoticeLateness();
  void RunTimers();
  void CheckStalled(AttemptId attempt);

  const RouterOptions options_;
  const std::unique_ptr<RoutingPolicy> policy_;
  const MonotonicTime startup_end_;
  const MonotonicTime slow_start_from_;
  Jitter jitter_;
  RetryBudget retry_budget_;
  ServiceTimes service_times_;
  WorkerTable workers_;
  AdmissionQueue queue_;
  std::map<RequestId, Entry> entries_;
  absl::flat_hash_map<WorkId, WaitingWork> waiting_;
  absl::flat_hash_map<AttemptId, Booking> bookings_;
  DeadlineSet<RequestId> deadlines_;
  DeadlineSet<AttemptId> stalls_;
  DeadlineSet<WorkerIndex> silences_;
  DeadlineSet<WorkId> retries_;
  ProgressWatch progress_;
  DeadlineSet<WorkerIndex> reopenings_;
  DeadlineSet<WorkerIndex> probings_;  // of those that are half-open
  std::set<RequestId> probes_;         // open, or with actions in out_
  MonotonicTime no_decode_since_;      // while no decode worker is ready
  bool had_decode_ = false;
  MonotonicTime next_sweep_ = kNever;
  // This process was late itself: until then nobody counts as silent.
  MonotonicTime hear_out_until_{};
  bool sweep_ = false;     // workers changed
  bool dispatch_ = false;  // something may be startable
  bool draining_ = false;
  uint64_t next_attempt_ = 1;
  uint64_t next_work_ = 1;
  uint64_t next_arrival_ = 1;
  RouterCounters counters_;  // without what the queue and entries_ know

  MonotonicTime now_;  // of the running Handle
  Actions out_;        // of the running Handle
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_ROUTER_CORE_H_
