#ifndef BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
#define BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/prefix_cache.h"
#include "common/worker/attempt_scheduler.h"
#include "common/worker/attempt_table.h"
#include "common/worker/chunk_planner.h"
#include "prefill_worker/prefill_events.h"
#include "prefill_worker/prefill_job.h"
#include "prefill_worker/prefix_push.h"

namespace baton::prefill {

// Decides everything a prefill worker does: which chunks run in the next
// step, which blocks are pushed when, and when blocks are given back.
//
// A block is held as kRunning while chunks may still write or read it, and as
// kSending from its push until the transfer is acknowledged or closed. Whole
// blocks that were handed over stay as kPrefix until their room is wanted, and
// are pushed once more to whoever asks for them (PushPrefix). Pure:
// single-threaded, no clock, no memory.
class PrefillScheduler final : public AttemptScheduler<PrefillKind> {
 public:
  using Event = prefill::Event;

  explicit PrefillScheduler(PrefillOptions options);

  // Actions are to be executed in order.
  std::vector<Action> Handle(Event event, MonotonicTime now);

  MonotonicTime NextDeadline() const {
    return std::min(AttemptScheduler::NextDeadline(), pushes_.NextDeadline());
  }
  bool idle() const { return AttemptScheduler::idle() && pushes_.empty(); }
  const PrefixCache& prefixes() const { return prefixes_; }

 private:
  using Phase = PrefillJob::Phase;
  using Link = PrefillJob::Link;
  using AttemptScheduler::Close;
  using AttemptScheduler::On;

  void On(SessionLost event, MonotonicTime now);
  void On(ShutDown event, MonotonicTime now);
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

  // Whole blocks that were handed over; and none of them when the compute that
  // made them is not to be trusted.
  void KeepPrefix(const Job& job);
  void DropUntrusted();
  void Push(SessionId session, v1::PushPrefix push, MonotonicTime now);
  // Without names and deadline; nothing is held yet.
  absl::StatusOr<PrefixPush> NewPush(const v1::PushPrefix& push);
  void RefusePush(SessionId session, AttemptId attempt, LandingId landing,
                  const absl::Status& why);
  void OnPushOpened(PrefixPush& push, const absl::StatusOr<TransferId>& opened);
  void OnPushAcked(PrefixPush& push, uint64_t bytes);
  void OnPushFailed(PrefixPush& push, const absl::Status& status);
  void OnPushClosed(PrefixPush& push);
  void GiveUpPush(PrefixPush& push);  // an open one
  void EndPush(PrefixPush& push);     // `push` is then gone
  void GiveBackBlocks(PrefixPush& push);
  void ExpirePushes(MonotonicTime now);

  void MakeRoom(uint32_t free) override { prefixes_.MakeRoom(free, pool_); }
  void CompleteLoad(v1::WorkerLoad* load) const override;

  const PrefillOptions options_;
  PrefixCache prefixes_;
  AttemptTable<PrefixPush> pushes_;
  absl::flat_hash_map<TransferId, TransferOwner> transfers_;  // not over
  std::deque<JobId> waiting_;
  ChunkPlanner chunks_;
  std::vector<ChunkPlanner::Chunk> step_;  // of the step in flight
  uint64_t waiting_tokens_ = 0;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_SCHEDULER_H_
