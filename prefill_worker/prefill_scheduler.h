#ifndef BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
#define BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/sequence/sequence.h"
#include "common/worker/attempt_scheduler.h"
#include "common/worker/chunk_planner.h"
#include "common/worker/compute_health.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/sequence_spec.h"
#include "common/worker/worker_load.h"
#include "kv_transfer/transfer_core.h"
#include "prefill_worker/prefill_job.h"
#include "proto/kv_transfer.pb.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

struct PrefillOptions {
  WorkerEpoch epoch;
  uint32_t blocks = 0;  // pool size
  StepBudget budget;
  uint32_t max_attempts = 1024;  // accepted and not over; more are refused
  ComputeHealth::Options health = {};
  // Of a step; none: not predicted. The scheduler learns in its own and leaves
  // none here.
  std::optional<CostModel> costs = {};
  SequenceLimits limits;
  std::shared_ptr<const Vocabulary> vocabulary;
};

// --- events, besides those of common/worker/scheduler_events.h ---
using CommandReceived = baton::CommandReceived<v1::PrefillCommand>;
// Answer to OpenTransfer.
struct TransferOpened {
  JobId job;
  absl::StatusOr<TransferId> transfer;
};
using Event = std::variant<SessionOpened, SessionLost, CommandReceived,
                           StepDone, TransferOpened, transfer::TransferEvent,
                           Tick, DrainStarted, ShutDown>;

// --- actions ---
struct OpenTransfer {
  JobId job;
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

struct PrefillCounters : WorkerCounters {
  uint64_t handed_over = 0, cancelled = 0, ended_at_first_token = 0;
};

struct PrefillKind {
  using Job = PrefillJob;
  using Command = v1::PrefillCommand;
  using Message = v1::PrefillEvent;
  using Action = prefill::Action;
  using Counters = PrefillCounters;
  static constexpr char kName[] = "prefill worker";
};

// Decides everything a prefill worker does: which chunks run in the next
// step, which blocks are pushed when, and when blocks are given back.
//
// A block is held as kRunning while chunks may still write or read it, and as
// kSending from its push until the transfer is acknowledged or closed. Pure:
// single-threaded, no clock, no memory.
class PrefillScheduler final : public AttemptScheduler<PrefillKind> {
 public:
  using Event = prefill::Event;

  explicit PrefillScheduler(PrefillOptions options);

  // Actions are to be executed in order.
  std::vector<Action> Handle(Event event, MonotonicTime now);

 private:
  using Phase = PrefillJob::Phase;
  using Link = PrefillJob::Link;
  using AttemptScheduler::Close;
  using AttemptScheduler::On;

  void On(CommandReceived event, MonotonicTime now);
  void On(StepDone event, MonotonicTime now);
  void On(TransferOpened event, MonotonicTime now);
  void On(transfer::TransferEvent event, MonotonicTime now);

  void Start(SessionId session, v1::StartPrefill start, MonotonicTime now);
  absl::StatusOr<Job> NewJob(SessionId session, v1::StartPrefill start,
                             MonotonicTime now) const;
  void Cancel(SessionId session, AttemptId attempt);
  void OnAcked(Job& job, const transfer::TransferAcked& acked,
               MonotonicTime now);
  void OnTransferFailed(Job& job, const absl::Status& status);
  void OnTransferClosed(Job& job);

  void ActivateWaiting(MonotonicTime now);
  void StartStep(MonotonicTime now);
  void FinishChunk(Job& job, const ChunkPlanner::Chunk& chunk,
                   SpanResult result, MonotonicTime now);
  void FinishPrefill(Job& job, const std::vector<SampledToken>& draws,
                     MonotonicTime now);
  void PushComplete(Job& job);

  void Close(Job& job, const absl::Status& failure, bool retryable,
             v1::FailureCause cause) override;
  void GiveBackBlocks(Job& job);
  // Erases the job if it is closing and holds nothing; `job` is then gone.
  void EraseIfOver(Job& job);
  void CompleteLoad(v1::WorkerLoad* load) const override;

  const PrefillOptions options_;
  absl::flat_hash_map<TransferId, JobId> transfers_;  // not over
  std::deque<JobId> waiting_;
  ChunkPlanner chunks_;
  std::vector<ChunkPlanner::Chunk> step_;  // of the step in flight
  uint64_t waiting_tokens_ = 0;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
