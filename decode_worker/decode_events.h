#ifndef BATON_DECODE_WORKER_DECODE_EVENTS_H_
#define BATON_DECODE_WORKER_DECODE_EVENTS_H_

// What the decode scheduler is told and what it answers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/compute_health.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/sequence_spec.h"
#include "common/worker/step_budget.h"
#include "common/worker/worker_load.h"
#include "decode_worker/decode_job.h"
#include "decode_worker/return_choice.h"
#include "decode_worker/speculation/speculation.h"
#include "kv_transfer/transfer_core.h"
#include "proto/decode.pb.h"

namespace baton::decode {

enum class Batching {
  kContinuous,  // an attempt joins the batch at any step
  kStatic,      // a new batch starts when the old one is empty
};

struct DecodeOptions {
  WorkerEpoch epoch;
  uint32_t blocks = 0;                      // pool size
  StepBudget budget;                        // of prefill beside decode rows
  uint32_t max_sequences = 64;              // choices accepted at once
  Duration tpot_target = Duration::zero();  // see BatchCap
  double landing_fraction = 0.5;            // of the pool, for landings
  Batching batching = Batching::kContinuous;
  Duration landing_timeout = std::chrono::seconds(120);
  Duration retry_after = std::chrono::milliseconds(20);
  uint32_t max_preemptions = 3;   // of an attempt; then its growth is reserved
  double length_quantile = 0.75;  // that admission plans with: OutputLengths
  // How long attempts may wait for blocks while no step is made for them; well
  // below the time after which routers take a worker for stalled.
  Duration block_patience = std::chrono::seconds(2);
  // For tests: every attempt loses its blocks after each of its first steps,
  // as often as this and max_preemptions say.
  uint32_t forced_preemptions = 0;
  PreemptedReturn preempted_return = PreemptedReturn::kAuto;
  uint64_t block_bytes = 0;  // of KV, for what a push is predicted to take
  std::string fingerprint;   // 32 bytes, as the holders' of what is pushed
  std::string transport;     // reported with landings
  ComputeHealth::Options health = {};
  // Of a step; none: not predicted. The scheduler learns in its own and leaves
  // none here.
  std::optional<CostModel> costs = {};
  SpeculationOptions speculation = {};
  SequenceLimits limits;
  std::shared_ptr<const Vocabulary> vocabulary;
};

// --- events, besides those of common/worker/scheduler_events.h ---
using CommandReceived = baton::CommandReceived<v1::DecodeCommand>;
// Answer to OpenLanding.
struct LandingOpened {
  JobId job;
  absl::StatusOr<v1::Ticket> ticket;
};
using Event = std::variant<SessionOpened, SessionLost, CommandReceived,
                           StepDone, LandingOpened, transfer::TransferEvent,
                           Tick, DrainStarted, ShutDown>;

// --- actions ---
struct OpenLanding {
  JobId job;
  std::vector<BlockRef> blocks;  // by ordinal; a partial last one is to be
  uint32_t token_count = 0;      // zeroed before
  Duration timeout{};
};
struct CancelLanding {
  LandingId landing;
};
using SendEvent = baton::SendEvent<v1::DecodeEvent>;
using Action = std::variant<RunStep, OpenLanding, CancelLanding, SendEvent>;

struct DecodeCounters : WorkerCounters {
  uint64_t refused = 0, landed = 0, done = 0;
  uint64_t released = 0;  // by the router, before their end
  SpeculationCounters speculation;
  uint64_t preemptions = 0;
  uint64_t recomputed_tokens = 0;  // rows that were computed before
  uint32_t most_preemptions = 0;   // of one attempt
  uint64_t landings_given_up = 0;  // their blocks were needed for growth
  uint64_t given_up = 0;           // attempts that waited for blocks too long
  // Preempted attempts that came back, by a push or computed again.
  uint64_t pushed_returns = 0, recomputed_returns = 0;
  uint64_t fetched_blocks = 0, fetched_bytes = 0;
  uint64_t failed_fetches = 0;   // what was asked for did not come in time
  uint64_t refused_fetches = 0;  // nobody pushes it
};

struct DecodeKind {
  using Job = DecodeJob;
  using Command = v1::DecodeCommand;
  using Message = v1::DecodeEvent;
  using Action = decode::Action;
  using Counters = DecodeCounters;
  static constexpr char kName[] = "decode worker";
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_EVENTS_H_
