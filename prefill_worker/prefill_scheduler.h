#ifndef BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
#define BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/block_pool.h"
#include "common/sequence/sequence.h"
#include "common/worker/chunk_planner.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/sequence_spec.h"
#include "common/worker/session_accounts.h"
#include "kv_transfer/transfer_core.h"
#include "proto/kv_transfer.pb.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

struct PrefillOptions {
  WorkerEpoch epoch;
  uint32_t blocks = 0;  // pool size
  uint32_t step_token_budget = 128;
  uint32_t max_attempts = 1024;  // accepted and not over; more are refused
  SequenceLimits limits;
  std::shared_ptr<const Vocabulary> vocabulary;
};

// --- events, besides those of common/worker/scheduler_events.h ---
struct CommandReceived {
  SessionId session;
  v1::PrefillCommand command;
};
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
struct SendEvent {  // the session numbers it
  SessionId session;
  v1::PrefillEvent event;
};
using Action = std::variant<RunStep, OpenTransfer, PushBlock, SealTransfer,
                            AbortTransfer, SendEvent>;

// Decides everything a prefill worker does: which chunks run in the next
// step, which blocks are pushed when, and when blocks are given back.
//
//   WAITING --blocks acquired--> RUNNING --last chunk--> SENDING --ack--> gone
//   any --cancel, deadline, failure, every choice ended--> CLOSING --> gone
//
// A block is held as kRunning while chunks may still write or read it, and as
// kSending from its push until the transfer is acknowledged or closed. Pure:
// single-threaded, no clock, no memory.
class PrefillScheduler {
 public:
  using Event = prefill::Event;
  using Action = prefill::Action;

  explicit PrefillScheduler(PrefillOptions options);

  // Actions are to be executed in order.
  std::vector<Action> Handle(Event event, MonotonicTime now);
  // When a Tick is due if nothing else happens.
  MonotonicTime NextDeadline() const;

  const BlockPool& pool() const { return pool_; }
  bool idle() const { return jobs_.empty() && !step_in_flight_; }
  bool draining() const { return draining_; }
  // False after three attempts in a row ended with NaN or infinity: the
  // hardware is not to be trusted, new work is refused.
  bool healthy() const { return numeric_failures_ < 3; }
  v1::WorkerLoad Load() const;

  struct Counters {
    uint64_t steps = 0, prompt_tokens = 0, attempts = 0, handed_over = 0;
    uint64_t failed = 0, cancelled = 0, ended_at_first_token = 0;
    uint64_t stale_messages = 0;  // late, duplicate or unknown
    uint64_t transfer_failures = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  enum class Phase { kWaiting, kRunning, kSending, kClosing };
  // kNone and kOver: no memory of the job is named by a transfer.
  enum class Link { kNone, kOpening, kOpen, kAborting, kOver };
  struct Job {
    JobId id;
    SessionId session;
    AttemptId attempt;
    SequenceRequest request;
    uint32_t tokens = 0;  // to compute
    v1::Ticket ticket;
    Phase phase = Phase::kWaiting;
    MonotonicTime accepted, started, sampled, deadline;
    uint32_t computed = 0;  // leading tokens
    uint32_t chunks = 0;
    bool in_step = false;
    std::vector<BlockRef> blocks;
    bool holds_running = false;  // on all blocks
    uint32_t pushed = 0;         // leading blocks held as kSending
    Link link = Link::kNone;
    TransferId transfer;
    v1::SealContents seal;
  };
  using AttemptKey = std::pair<SessionId, AttemptId>;

  void On(SessionOpened event, MonotonicTime now);
  void On(SessionLost event, MonotonicTime now);
  void On(CommandReceived event, MonotonicTime now);
  void On(StepDone event, MonotonicTime now);
  void On(TransferOpened event, MonotonicTime now);
  void On(transfer::TransferEvent event, MonotonicTime now);
  void On(Tick event, MonotonicTime now);
  void On(DrainStarted event, MonotonicTime now);
  void On(ShutDown event, MonotonicTime now);

  void Start(SessionId session, v1::StartPrefill start, MonotonicTime now);
  absl::StatusOr<Job> NewJob(SessionId session, v1::StartPrefill start,
                             MonotonicTime now) const;
  void Cancel(SessionId session, AttemptId attempt);
  void OnAcked(Job& job, const transfer::TransferAcked& acked,
               MonotonicTime now);
  void OnTransferFailed(Job& job, const absl::Status& status);
  void OnTransferClosed(Job& job);

  void ExpireDeadlines(MonotonicTime now);
  void ActivateWaiting(MonotonicTime now);
  void StartStep(MonotonicTime now);
  void FinishChunk(Job& job, const ChunkPlanner::Chunk& chunk,
                   SpanResult result, MonotonicTime now);
  void FinishPrefill(Job& job, const std::vector<SampledToken>& draws,
                     MonotonicTime now);
  void PushComplete(Job& job);
  void ReportLoad(MonotonicTime now);

  // Ends the job: tells the router unless `failure` is OK, stops computing and
  // sending; blocks follow when nothing touches them any more.
  void Close(Job& job, const absl::Status& failure, bool retryable,
             v1::FailureCause cause);
  void Close(Job& job);  // nothing failed
  void GiveBackBlocks(Job& job);
  // Erases the job if it is closing and holds nothing; `job` is then gone.
  void EraseIfOver(Job& job);
  void SendFailure(SessionId session, AttemptId attempt,
                   const absl::Status& failure, bool retryable,
                   v1::FailureCause cause);

  const PrefillOptions options_;
  BlockPool pool_;
  std::map<JobId, Job> jobs_;
  absl::flat_hash_map<AttemptKey, JobId> attempts_;      // not closing
  absl::flat_hash_map<TransferId, JobId> transfers_;     // not over
  std::set<std::pair<MonotonicTime, JobId>> deadlines_;  // not closing
  std::deque<JobId> waiting_;
  ChunkPlanner chunks_;
  std::vector<ChunkPlanner::Chunk> step_;  // of the step in flight
  bool step_in_flight_ = false;
  SessionAccounts accounts_;
  uint64_t waiting_tokens_ = 0;
  uint64_t next_job_ = 1;
  int numeric_failures_ = 0;
  bool draining_ = false;
  Counters counters_;
  std::vector<Action> actions_;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
