#ifndef BATON_ROUTER_ROUTING_WORKER_VIEW_H_
#define BATON_ROUTER_ROUTING_WORKER_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/cost_model/throughput.h"
#include "proto/cluster.pb.h"
#include "router/routing/circuit_breaker.h"
#include "router/routing/concurrency_limit.h"
#include "router/routing/slow_start.h"
#include "router/routing/start_credit.h"
#include "router/routing/transfer_blame.h"
#include "router/routing/unseen_placements.h"
#include "router/routing/worker_index.h"

namespace baton::router {

enum class WorkerState {
  kConnecting,    // no session yet since it became known
  kReady,         // session up, compatible, takes work
  kDraining,      // session up, takes no new work
  kUnhealthy,     // session up, says itself that it must get no work
  kIncompatible,  // session up, but this router cannot use it
  kDown,          // had a session and lost it
  kDuplicate,     // another address leads to the same worker and is used
};
std::string_view ToString(WorkerState state);

// What a router knows of one worker: what its session said, and what this
// router has placed there. Soft state, void when the session ends.
struct WorkerView {
  WorkerIndex index;
  v1::WorkerRole role = v1::WORKER_ROLE_UNSPECIFIED;
  std::string address;
  WorkerState state = WorkerState::kConnecting;
  std::string detail;                 // why it is not ready, for people
  std::optional<WorkerIndex> twin{};  // kDuplicate: the one in use

  v1::WorkerHello hello;
  v1::WorkerLoad load;
  uint64_t session = 0;        // see SessionUp
  uint64_t last_sequence = 0;  // of events on this session
  MonotonicTime last_event;    // anything on this session
  MonotonicTime last_step;     // load.steps last moved
  MonotonicTime last_push{};   // blocks of it last arrived somewhere
  // Of its steps, while it says what they cost.
  std::optional<StepCosts> costs{};
  StartCredit credit;  // this session
  // Of this router's attempts now here: tokens yet to be computed, and tokens
  // whose KV is or will be here.
  uint64_t outstanding_prefill_tokens = 0;
  uint64_t outstanding_kv_tokens = 0;
  // Of a decode worker, for what this router placed here and its load does not
  // count yet.
  UnseenPlacements unseen;
  uint64_t placements = 0;  // attempts ever placed here
  uint32_t outstanding_attempts = 0;
  uint32_t outstanding_choices = 0;  // in the batch of a decode worker

  // What this router has seen of it; outlives its sessions.
  CircuitBreaker breaker;
  SlowStart slow_start;
  ConcurrencyLimit concurrency;
  TransferRecord transfers;

  bool session_up() const {
    return state == WorkerState::kReady || state == WorkerState::kDraining ||
           state == WorkerState::kUnhealthy ||
           state == WorkerState::kIncompatible;
  }
  bool ready() const { return state == WorkerState::kReady; }
  // Ready, and not shut out for its failures.
  bool healthy() const {
    return ready() && breaker.state() != CircuitBreaker::State::kOpen;
  }
  // Breaker, slow start and concurrency have nothing against one more attempt.
  bool Admits(MonotonicTime now) const;
  bool has_credit(uint64_t tokens) const {
    return credit.Has(tokens, hello, load);
  }
  bool has_any_credit() const { return credit.Any(load); }
  // Choices that a decode worker takes at once as things are.
  uint64_t SequenceLimit() const;
  // Blocks that a decode worker has for new work, by its own prediction; 0 if
  // it says nothing.
  uint64_t SpareBlocks() const;
  // What it decodes now, of all routers as far as known.
  DecodeBatch Decoding() const;
  // Prompt tokens waiting for computation, of all routers as far as known.
  uint64_t PrefillBacklogTokens() const;
  // KV tokens that sequences hold or will hold, of all routers as far as known.
  uint64_t KvTokensInUse() const;
};

// The state as people see it, and why the worker gets no work, if it does not.
std::string_view StateName(const WorkerView& worker);
std::string Detail(const WorkerView& worker, MonotonicTime now);

// "prefill-0 (127.0.0.1:4000)", or the address alone before the first hello.
std::string DisplayName(const WorkerView& worker);

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_WORKER_VIEW_H_
