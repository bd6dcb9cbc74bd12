#ifndef BATON_ROUTER_REQUEST_FLOW_ROUTER_OPTIONS_H_
#define BATON_ROUTER_REQUEST_FLOW_ROUTER_OPTIONS_H_

#include <array>
#include <chrono>
#include <cstdint>

#include "common/base/monotonic_time.h"
#include "router/admission/admission_queue.h"
#include "router/admission/retry_budget.h"
#include "router/request_flow/rejection.h"
#include "router/routing/circuit_breaker.h"

namespace baton::router {

struct RouterOptions {
  uint32_t vocabulary_size = 0;  // of the served model; required
  AdmissionLimits admission{};
  int max_replays = 3;  // of one choice
  // An attempt without any sign of progress for this long is replayed.
  Duration stall_timeout = std::chrono::seconds(10);
  // How long a finished answer waits for the decode worker's account of it.
  Duration closing_timeout = std::chrono::seconds(1);
  // A session without any event for this long is closed, and gets no new work
  // after a third of it; workers speak at least once a second.
  Duration silence_timeout = std::chrono::seconds(10);
  // Requests wait this long for workers that never had a session, counted from
  // the construction of the core ...
  Duration startup_grace{0};
  // ... and this long when all decode workers are gone.
  Duration unavailable_grace{0};
  // Not ready when there was work for this long and no worker made a step;
  // longer than stall_timeout, which repeats the work elsewhere first.
  Duration progress_timeout = std::chrono::seconds(15);
  // Roles that will have workers though none is known yet.
  bool prefill_configured = false;
  bool decode_configured = false;
  RetryLimits retry{};
  BreakerLimits breaker{};
  // Workers that come up later than this after the construction of the core,
  // or back from an open breaker, get work slowly for so long.
  Duration slow_start = std::chrono::seconds(10);
  // A worker whose breaker is half-open, and that no work has come to for so
  // long, gets a request of the router's own.
  Duration probe_after = std::chrono::seconds(2);
  uint64_t jitter_seed = 0;  // of retry times; differs from router to router
};

struct RouterCounters {
  uint64_t replays = 0;
  uint64_t returned = 0;          // attempts given up by workers for their load
  uint64_t stale_events = 0;      // late, duplicate or unknown; changed nothing
  uint64_t closed_sessions = 0;   // by this side
  uint64_t worker_changes = 0;    // moves when a WorkerInfo.state does
  uint64_t active_requests = 0;   // accepted, not finished
  uint64_t waiting_requests = 0;  // of these, with nothing but queued work
  uint64_t queued_work = 0;       // waiting for a place
  uint64_t queued_tokens = 0;
  uint64_t queued_bytes = 0;
  std::array<uint64_t, kPriorityBands> queued_by_priority{};
  uint64_t active_tenants = 0;  // with requests
  double replays_left = 0;      // in the budget
  RejectionCounts rejected{};
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_ROUTER_OPTIONS_H_
