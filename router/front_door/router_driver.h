#ifndef BATON_ROUTER_FRONT_DOOR_ROUTER_DRIVER_H_
#define BATON_ROUTER_FRONT_DOOR_ROUTER_DRIVER_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/event_loop.h"
#include "router/front_door/router_metrics.h"
#include "router/membership/membership.h"
#include "router/request_flow/router_core.h"

namespace baton::router {

// The client side of one request. Called on the driver's loop.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // `held_back`: the core had it before; the client could not read earlier.
  virtual void OnEvent(v1::GenerateEvent event, bool held_back) = 0;
  // Once, last.
  virtual void OnFinish(const absl::Status& status) = 0;
};

enum class CallKind { kAnswer, kRefusal };

// Runs a RouterCore: its event loop, its timer, the sessions to its workers
// and its clients. Thread-safe unless said otherwise.
class RouterDriver {
 public:
  // `metrics` outlives the driver. `on_ready_change` runs on the loop with the
  // new value of ready().
  RouterDriver(RouterOptions options, std::unique_ptr<RoutingPolicy> policy,
               MembershipOptions membership, RouterMetrics* metrics,
               std::function<void(const absl::Status&)> on_ready_change);
  // Ends all requests with UNAVAILABLE and all sessions.
  ~RouterDriver();
  RouterDriver(const RouterDriver&) = delete;
  RouterDriver& operator=(const RouterDriver&) = delete;

  // Connects to the workers.
  void Start();

  // Ids are unique in this process.
  RequestId NewRequestId() { return RequestId(next_request_.fetch_add(1)); }
  void Submit(ClientRequest request, std::shared_ptr<AnswerSink> sink);
  // Not OK: no such request can be taken now (RouterCore::RefuseEarly). Waits
  // for no more than one event of the loop.
  absl::Status RefuseEarly(const RequestOutline& outline,
                           MonotonicTime received);
  // Of a request that has ended already: no effect.
  void Cancel(RequestId id, absl::Status status = ClientCancelled{}.status);

  // Only what RouterMetrics allows from any thread.
  RouterMetrics* metrics() { return metrics_; }
  // Runs `task` on the loop later; not after the driver's end.
  void RunAfter(Duration delay, std::function<void()> task);

  // OK when new requests would be served; otherwise why not.
  absl::Status ready() const;
  // The longest sequence that the workers take now, 0 without a worker.
  uint32_t max_context_tokens() const { return max_context_.load(); }
  // `done` runs on the loop.
  void Describe(std::function<void(v1::GetClusterInfoResponse)> done);

  // No new requests from now on.
  void Drain();
  // True when all requests have ended within `timeout`.
  bool WaitUntilIdle(Duration timeout);
  // A client's call lives from CallOpened to CallClosed, longer than its
  // request: until the client has taken the end of its answer.
  void CallOpened(CallKind kind);
  void CallClosed(CallKind kind);
  // True when all answers, or all calls, have ended within `timeout`.
  bool WaitUntilTaken(Duration timeout);
  bool WaitUntilClosed(Duration timeout);
  uint64_t open_answers() const;
  // Ends all requests with this status.
  void Terminate(absl::Status status);

 private:
  struct Client {
    std::shared_ptr<AnswerSink> sink;
    RequestMeter meter;
  };

  void Handle(Event event);
  void Do(Action action);
  void Do(EmitToClient action);
  void Do(FinishClient action);
  void AfterEvents();
  // The core's judgements of workers; sessions log for themselves.
  void LogWorkers();  // with core_mutex_ held
  void ScheduleTick(MonotonicTime due);

  RouterMetrics* const metrics_;
  const std::string router_id_;
  const std::function<void(const absl::Status&)> on_ready_change_;
  std::atomic<uint64_t> next_request_{1};
  std::atomic<uint32_t> max_context_{0};

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  absl::Status ready_ = absl::UnavailableError("starting");  // mutex_
  uint64_t active_ = 0;         // mutex_; submitted, not finished
  uint64_t open_answers_ = 0;   // mutex_
  uint64_t open_refusals_ = 0;  // mutex_

  // Moves on the loop only, but for early refusals.
  std::mutex core_mutex_;
  RouterCore core_;  // core_mutex_

  // Loop only.
  absl::flat_hash_map<RequestId, Client> clients_;
  std::deque<Event> pending_;  // events that actions of an event caused
  bool handling_ = false;
  bool stopped_ = false;  // events are dropped
  uint64_t logged_changes_ = 0;
  std::map<std::string, std::string> worker_states_;  // by address
  MonotonicTime tick_at_ = kNever;
  EventLoop::TimerId tick_timer_ = 0;

  // In this order: sessions end while the loop still runs.
  EventLoop loop_{"router"};
  Membership membership_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_ROUTER_DRIVER_H_
