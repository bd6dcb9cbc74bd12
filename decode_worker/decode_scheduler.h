#ifndef BATON_DECODE_WORKER_DECODE_SCHEDULER_H_
#define BATON_DECODE_WORKER_DECODE_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/base/mutants.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/attempt_scheduler.h"
#include "common/worker/chunk_planner.h"
#include "common/worker/scheduler_events.h"
#include "decode_worker/admission_turn.h"
#include "decode_worker/batch_cap.h"
#include "decode_worker/decode_events.h"
#include "decode_worker/decode_job.h"
#include "decode_worker/output_lengths.h"
#include "decode_worker/peak_demand.h"
#include "decode_worker/return_choice.h"
#include "decode_worker/speculation/draft_model_planner.h"
#include "decode_worker/speculation/speculation.h"
#include "decode_worker/speculation/speculation_control.h"
#include "kv_transfer/transfer_core.h"
#include "proto/decode.pb.h"

namespace baton::decode {

// Decides everything a decode worker does: who gets blocks, who is in the next
// step, when blocks are given back. Attempts are accepted as long as the peak
// of what all are predicted to need fits the pool. A choice that finds no free
// block takes those of who ranks last (rank: priority band, then age), running
// ones, which come back before lower rank runs, pushed by a holder or computed
// again, then landings, which fail. Nobody waits for ever: who ranks first
// needs at most the pool, those preempted max_preemptions times hold all they
// need, and who waits for landings of higher rank alone fails in time. Pure:
// single-threaded, no clock, no memory.
class DecodeScheduler final : public AttemptScheduler<DecodeKind> {
 public:
  using Event = decode::Event;

  explicit DecodeScheduler(DecodeOptions options);

  // Actions are to be executed in order.
  std::vector<Action> Handle(Event event, MonotonicTime now);
  MonotonicTime NextDeadline() const {
    const MonotonicTime next = AttemptScheduler::NextDeadline();
    return step_in_flight_ ? next : std::min(next, standstill_);
  }

  uint32_t waiting() const { return waiting_; }  // attempts, for blocks
  uint32_t fetching() const;  // attempts, for what a holder pushes
  // Most blocks in use at one time from now on, as of the last event.
  uint64_t predicted_peak() const {
    return jobs_.empty() ? 0 : predicted_peak_;
  }
  // Taken by drafters.
  size_t drafter_bytes() const {
    return drafting_ == nullptr ? 0 : drafting_->memory.held();
  }
  // Of the draft model; null: there is none.
  const BlockPool* draft_pool() const {
    return draft_model_.has_value() ? &draft_model_->pool() : nullptr;
  }

 private:
  using Phase = DecodeJob::Phase;
  using AttemptScheduler::Close;
  using AttemptScheduler::On;

  void On(CommandReceived event, MonotonicTime now);
  void On(StepDone event, MonotonicTime now);
  void On(LandingOpened event, MonotonicTime now);
  void On(transfer::TransferEvent event, MonotonicTime now);

  // Reservation: decode_reservation.cc.
  void Reserve(SessionId session, const v1::ReserveLanding& command,
               MonotonicTime now);
  void Serve(SessionId session, const v1::ServeLocally& command,
             MonotonicTime now);
  void Release(SessionId session, AttemptId attempt);
  // The job with its blocks; null: the router was told why not.
  template <class Wanted>
  DecodeJob* Accept(SessionId session, const Wanted& command, bool local,
                    MonotonicTime now);
  void Refuse(SessionId session, AttemptId attempt, std::string reason);
  std::string WhyClosed() const;  // to everything new; or empty
  // Empty, or why there is no room for this new attempt now.
  std::string WhyNoRoom(const DecodeJob& job) const;
  DecodeBatch AcceptedBatch() const;  // the next rows of all that are here
  void OnVerified(DecodeJob& job, const transfer::LandingVerified& verified,
                  MonotonicTime now);
  absl::Status AppendSealed(DecodeJob& job, const v1::SealContents& seal);
  void OnLandingOver(DecodeJob& job);
  void MakeBranches(DecodeJob& job);  // a block table for each choice left

  // Growth and preemption: decode_growth.cc.
  // Gives every decoding attempt the blocks of its next rows, if need be from
  // attempts of lower rank; who gets none waits where it is.
  void GrowTables();
  // Blocks for the branch's next `rows` rows, of which GrowTables has covered
  // the first; more only as long as there is plenty. Says how many rows are
  // covered, 1..rows.
  uint32_t CoverRows(DecodeJob& job, Branch& branch, uint32_t rows);
  uint32_t Missing(const DecodeJob& job) const;  // blocks, for the next rows
  // `other` loses its blocks before the job waits for any.
  bool GivesWay(const DecodeJob& other, const DecodeJob& job) const;
  // Who gives way, last in rank first: who holds blocks; who lands, after them.
  std::vector<DecodeJob*> VictimsFor(const DecodeJob& job);
  std::vector<DecodeJob*> LandingsFor(const DecodeJob& job);
  void Preempt(DecodeJob& job);
  void ForcePreemptions();
  uint32_t ComingFree() const;  // in quarantine, and then nobody's
  // Landings fail until so many blocks are free or coming free.
  void CloseLandingsFor(const DecodeJob& job, uint32_t blocks);
  void CloseLanding(DecodeJob& landing);

  // Returning: decode_return.cc.
  std::vector<DecodeJob*> Waiting();  // for blocks, by rank
  // By rank, as long as they fit, if need be beside higher rank alone.
  void ReturnPreempted(MonotonicTime now);
  bool WaitsForBatch(const DecodeJob& job) const;  // a static one
  // How many of `others`, in order, must go for it to fit; none: too few.
  std::optional<size_t> FewestOf(absl::Span<DecodeJob* const> others,
                                 const DecodeJob& job) const;
  std::vector<DecodeJob*> Leaving();  // whose blocks come by themselves
  void MakeRoomFor(const DecodeJob& job);
  // Of no step while attempts wait. True: plan again.
  bool EndStandstill(MonotonicTime now);
  void CloseLandingsToReturn(const DecodeJob& job);
  void Return(DecodeJob& job, MonotonicTime now);
  // From position `first` on: what of the context is missing, then own rows.
  void Recompute(DecodeJob& job, uint32_t first, MonotonicTime now);

  // Blocks that a holder pushes back: decode_fetch.cc.
  bool Fetches(const DecodeJob& job, MonotonicTime now) const;
  void Fetch(DecodeJob& job, std::vector<BlockRef> blocks, MonotonicTime now);
  void OnFetchOpened(DecodeJob& job, LandingOpened event, MonotonicTime now);
  void OnFetchEvent(DecodeJob& job, const transfer::TransferEvent& event,
                    MonotonicTime now);
  void On(SessionId session, const v1::PushRefused& refused, MonotonicTime now);
  void FailFetch(const DecodeJob& job, MonotonicTime now);  // is noted
  void GiveUpFetch(DecodeJob& job);
  // It is over: the attempt goes on, if it still waits for the blocks.
  void EndFetch(DecodeJob& job, bool arrived, MonotonicTime now);

  // Forecast: decode_forecast.cc.
  // With the blocks that it takes first and at the predicted peak, once those
  // that are `gone` hold none.
  bool FitsWithout(const DecodeJob& job,
                   absl::Span<DecodeJob* const> gone) const;
  // Most blocks in use at one time from now on, with `one_more` or without.
  uint64_t PredictedPeak(const DecodeJob* one_more,
                         absl::Span<DecodeJob* const> gone = {}) const;
  void AddDemand(const DecodeJob& job, PeakDemand* demand) const;
  uint32_t StepsLeft(const Sequence& choice, uint64_t rows) const;
  uint32_t AllowedPeak() const;

  // Steps: decode_steps.cc.
  void JoinReady(MonotonicTime now);
  bool BatchRuns() const;
  void StartStep(MonotonicTime now);
  StepPlan PlanStep(MonotonicTime now);
  void PlanDecode(DecodeJob& job, StepPlan* plan);
  void PlanPrefill(const ChunkPlanner::Chunk& chunk, StepPlan* plan);
  void PlanRecompute(DecodeJob& job, const ChunkPlanner::Chunk& chunk,
                     StepPlan* plan);
  void CopyContextEnd(const DecodeJob& job, Branch& branch, StepPlan* plan);
  // Adds a span over `count` rows of a branch from position `first` on.
  PlannedSpan& PlanRows(DecodeJob& job, size_t branch, uint32_t first,
                        uint32_t count, StepPlan* plan);
  absl::Status TakeResult(const StepRow& row, SpanResult result,
                          MonotonicTime now, v1::StepTokens* tokens);
  void TakeDecoded(const StepRow& row, const SpanResult& result,
                   v1::StepTokens* tokens);
  void EndRecompute(DecodeJob& job, MonotonicTime now);
  void AppendDraw(DecodeJob& job, Sequence* sequence,
                  const SampledToken& sampled, v1::StepTokens* tokens);
  void DropEndedBranches(DecodeJob& job);
  void Finish(DecodeJob& job, MonotonicTime now);

  // Guesses: decode_drafts.cc.
  void PlanDrafts(StepPlan* plan);
  void PlanGuesses(StepPlan* plan);
  void PlanModelGuesses(StepPlan* plan);
  // visit(span, job, branch) for every decode row of the step.
  template <class Visit>
  void ForEachDecodeRow(Visit visit);
  size_t MostDrafts(const Sequence& sequence) const;
  // How many of each offer are verified; see ChooseDrafts.
  std::vector<uint32_t> DraftCounts(const StepPlan& plan,
                                    const std::vector<DraftOffer>& offers,
                                    const DraftPasses& draft) const;
  void BeginDraftStep(const StepPlan& plan,
                      const std::vector<DraftOffer>& offers);
  // Has the draft model read for the choices for which it would guess
  // (`offers`); takes away the offers of those that it cannot guess for yet.
  void ReadForDrafts(std::vector<DraftOffer>* offers, StepPlan* plan);
  // Blocks for the rows of `count` guesses behind a decode row.
  void AddDraftRows(StepRow& row, const Branch& branch, uint32_t count,
                    PlannedSpan* span, StepPlan* plan);
  Speculator& SpeculatorOf(DecodeJob& job, const Branch& branch);
  // What became of a decode row with or without guesses, of whose tokens so
  // many were appended.
  void JudgeDrafts(const StepRow& row, const SpanResult& result,
                   size_t appended);
  void JudgeDraftModel(const StepResult& result);
  void StopDrafts(const StepRow& row);  // of the choice, for good
  void ForgetEndedDrafts();

  void Close(Job& job, const absl::Status& failure, bool retryable,
             v1::FailureCause cause) override;
  void GiveBackBlocks(DecodeJob& job);
  void ReleaseTables(DecodeJob& job);
  // Of an answer that ended.
  void NoteLength(const Sequence& choice, const FinishCause& finish);
  void EraseIfOver(DecodeJob& job);
  void MoveBlocks(const std::vector<BlockRef>& blocks,
                  std::optional<BlockUse>* use, BlockUse to);
  void ReleaseBlocks(const std::vector<BlockRef>& blocks,
                     std::optional<BlockUse>* use);
  void CompleteLoad(v1::WorkerLoad* load) const override;

  const DecodeOptions options_;
  const BatchCap cap_;
  absl::flat_hash_map<LandingId, JobId> landings_;  // not over
  ChunkPlanner chunks_;
  std::vector<StepRow> step_;  // of the step in flight
  uint32_t sequences_ = 0;     // choices accepted and not ended
  OutputLengths lengths_;
  AdmissionTurn turn_;
  ReturnChoice return_choice_;
  const std::shared_ptr<Drafting> drafting_;  // null: nothing like it guesses
  std::optional<DraftModelPlanner> draft_model_;
  uint32_t waiting_ = 0;  // attempts preempted or without their next block
  MonotonicTime standstill_ = kNever;  // when it ends, of no step for them
  uint64_t predicted_peak_ = 0;        // as of the last event
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_SCHEDULER_H_
