#ifndef BATON_PREFILL_WORKER_PREFILL_EVENTS_H_
#define BATON_PREFILL_WORKER_PREFILL_EVENTS_H_

// What the prefill scheduler is told and what it answers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

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
#include "kv_transfer/transfer_core.h"
#include "prefill_worker/prefill_job.h"
#include "proto/kv_transfer.pb.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

struct PrefillOptions {
  WorkerEpoch epoch;
  std::string fingerprint;  // seeds prefix hashes
  uint32_t blocks = 0;      // pool size
  StepBudget budget;
  uint32_t max_attempts = 1024;  // accepted and not over; more are refused
  uint32_t max_pushes = 64;      // of prefixes, at once; more are refused
  ComputeHealth::Options health = {};
  // Of a step; none: not predicted. The scheduler learns in its own and leaves
  // none here.
  std::optional<CostModel> costs = {};
  SequenceLimits limits;
  std::shared_ptr<const Vocabulary> vocabulary;
};

// --- events, besides those of common/worker/scheduler_events.h ---
using CommandReceived = baton::CommandReceived<v1::PrefillCommand>;
// Whose transfer it is: an attempt's, or a PrefixPush.
struct TransferOwner {
  enum class Kind { kAttempt, kPrefixPush };
  Kind kind = Kind::kAttempt;
  JobId job;
};
// Answer to OpenTransfer.
struct TransferOpened {
  TransferOwner owner;
  absl::StatusOr<TransferId> transfer;
};
using Event = std::variant<SessionOpened, SessionLost, CommandReceived,
                           StepDone, TransferOpened, transfer::TransferEvent,
                           Tick, DrainStarted, ShutDown>;

// --- actions ---
struct OpenTransfer {
  TransferOwner owner;
  v1::Ticket ticket;
  MonotonicTime deadline;
};
struct PushBlock {
  TransferId transfer;
  uint32_t ordinal = 0;
  BlockRef block;  // held as kSending until the transfer is over
  uint32_t written_tokens = 0;
};
struct SealTransfer {
  TransferId transfer;
  v1::SealContents seal;
};
struct AbortTransfer {
  TransferId transfer;
};
using SendEvent = baton::SendEvent<v1::PrefillEvent>;
using Action = std::variant<RunStep, OpenTransfer, PushBlock, SealTransfer,
                            AbortTransfer, SendEvent>;

// Pushes of prefixes, by how they ended.
struct PushCounters {
  uint64_t acked = 0, refused = 0, failed = 0;
  uint64_t cancelled = 0;  // deadline, lost session, drain, not wanted any more
  uint64_t bytes = 0;      // of those acked
};

struct PrefillCounters : WorkerCounters {
  uint64_t handed_over = 0, cancelled = 0, ended_at_first_token = 0;
  PushCounters pushes;
};

struct PrefillKind {
  using Job = PrefillJob;
  using Command = v1::PrefillCommand;
  using Message = v1::PrefillEvent;
  using Action = prefill::Action;
  using Counters = PrefillCounters;
  static constexpr char kName[] = "prefill worker";
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_EVENTS_H_
