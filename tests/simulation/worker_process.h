#ifndef BATON_TESTS_SIMULATION_WORKER_PROCESS_H_
#define BATON_TESTS_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/kv_cache/kv_memory.h"
#include "common/worker/step_plan.h"
#include "decode_worker/return_choice.h"
#include "kv_transfer/transfer_core.h"
#include "proto/cluster.pb.h"
#include "tests/simulation/process.h"
#include "tests/simulation/sim_transport.h"

namespace baton::simulation {

struct WorkerShape {
  uint32_t version = 0;  // of the model
  uint32_t blocks = 64;
  uint32_t step_token_budget = 64;
  uint32_t max_context_tokens = 256;
  uint32_t max_sequences = 16;
  v1::Disaggregation disaggregation = v1::DISAGGREGATION_ALWAYS;
  uint32_t local_prefill_max_tokens = 16;
  bool static_batching = false;
  uint32_t max_preemptions = 3;
  decode::PreemptedReturn preempted_return = decode::PreemptedReturn::kAuto;
  double length_quantile = 0.75;
  uint32_t forced_preemptions = 0;
  Duration block_patience = std::chrono::seconds(2);
  uint32_t max_draft_tokens = 0;  // 0: no speculation
  double wrong_guesses = 0;       // share of the guesses
  bool draft_always = false;
  uint32_t draft_blocks = 0;  // of a draft model; 0: none
  Duration landing_timeout = std::chrono::seconds(5);
  Duration step_time = std::chrono::milliseconds(1);
  Duration row_time = std::chrono::microseconds(50);
  Duration step_target = Duration::zero();  // see StepBudget
  Duration tpot_target = Duration::zero();  // see decode::BatchCap

  // Of these steps.
  CostModel costs() const;
  std::string fingerprint() const;  // of the model
  // Per span and per step, until the cluster is healed.
  double numeric_failure = 0;
  double stall = 0;
  Duration stall_time = std::chrono::seconds(3);
};

// One life of a worker process but for its scheduler: block memory, a transfer
// core on a "thread" of its own, a compute "thread". Threads talk through
// queues with delays, so that what can interleave does. Checks after every
// event that nobody uses a block that its holder has let go of.
class WorkerProcess : public Process {
 public:
  WorkerProcess(Environment environment, Random random, std::string name,
                WorkerEpoch epoch, const WorkerShape& shape,
                std::function<void()> on_death);
  ~WorkerProcess() override;

  WorkerEpoch epoch() const { return epoch_; }
  virtual const BlockPool& pool() const = 0;
  virtual const BlockPool* draft_pool() const { return nullptr; }
  virtual bool idle() const = 0;
  // False: it refuses work until it is replaced.
  virtual bool healthy() const = 0;
  const transfer::TransferCore& transfers() const { return *core_; }

  // As SIGTERM does: takes nothing new, ends what is left after `patience`,
  // then calls `exited`; all blocks must be free by then.
  void Drain(Duration patience, std::function<void()> exited);
  bool draining() const { return draining_; }
  // No landing and no transfer can be opened from now on, until Heal().
  void Break() { broken_ = true; }
  // All works as it should from now on.
  void Heal();
  // References to blocks of an earlier life at this place.
  void CheckRefusedForever(std::vector<BlockRef> earlier);
  std::vector<BlockRef> AllBlocks() const;

 protected:
  // On the transfer thread, in call order.
  void OpenLanding(std::vector<BlockRef> blocks, uint32_t token_count,
                   Duration timeout,
                   std::function<void(absl::StatusOr<v1::Ticket>)> done);
  void CancelLanding(LandingId landing);
  void OpenTransfer(v1::Ticket ticket, MonotonicTime deadline,
                    std::function<void(absl::StatusOr<TransferId>)> done);
  void PushBlock(TransferId transfer, uint32_t ordinal, BlockRef block,
                 uint32_t written_tokens);
  void Seal(TransferId transfer, v1::SealContents seal);
  void Abort(TransferId transfer);
  // On the compute thread; StepFinished follows.
  void StartStep(StepPlan plan);

  const WorkerShape& shape() const { return shape_; }

  // On the main thread.
  virtual void TimePassed() = 0;
  virtual void DrainStarts() = 0;
  virtual void ShutsDown() = 0;
  virtual void StepFinished(uint64_t number, StepResult result) = 0;
  virtual void TransferHappened(transfer::TransferEvent event) = 0;

  void OnMainThread(EventQueue::Task task) {
    main_thread_.Post(std::move(task));
  }
  // Call after everything the main thread did.
  void CheckAll();
  void WakeAt(MonotonicTime when) { scheduler_alarm_.Set(when); }
  // Nobody wants anything of the process: then it must be idle, as soon as no
  // step and no transfer touches its blocks.
  void CheckIdleForNobody();
  v1::WorkerHello Hello(v1::WorkerRole role) const;
  void OnClockJump() override;
  void OnDeath() override { transport_->Silence(); }

 private:
  // Of the transfer or compute thread.
  void AnswerOnMainThread(EventQueue::Task task);
  void OnTransferThread(EventQueue::Task task);
  void PollTransfers();
  void Noted(const transfer::TransferEvent& event);
  void Compute(const StepPlan& plan, StepResult* result);
  StepSpan Resolve(const PlannedSpan& planned, const KvMemory& memory);
  // What the draft model guesses for one of the spans; its KV is checked.
  // `failure` says if the draft model broke.
  std::vector<TokenId> Guess(const PlannedDraft& draft, absl::Status* failure);
  bool CheckPlan(const StepPlan& plan);
  void CheckHeld(absl::Span<const BlockRef> blocks,
                 std::initializer_list<BlockUse> uses, std::string_view what);
  void CheckClaims();
  void CheckFences();
  void CheckBounds();
  void LookWhetherDrained();

  const WorkerEpoch epoch_;
  WorkerShape shape_;
  bool broken_ = false;
  std::unique_ptr<KvMemory> memory_, draft_memory_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<transfer::TransferCore> core_;
  Thread transfer_thread_;
  Thread main_thread_;
  Alarm poll_alarm_;
  Alarm scheduler_alarm_;
  bool poll_posted_ = false;
  bool draining_ = false;
  std::function<void()> exited_;

  // What is in use at this moment, as the transfer core and the compute thread
  // see it.
  std::map<LandingId, std::vector<BlockRef>> landings_;
  std::map<TransferId, std::vector<BlockRef>> pushes_;
  std::unique_ptr<StepPlan> step_;
  // What the draft model wrote in it, from its first guess on.
  struct DraftKv {
    size_t span = 0;
    uint64_t first_guess = 0, end = 0;
    std::vector<std::byte*> blocks;
  };
  std::vector<DraftKv> draft_kv_;
  uint32_t on_their_way_ = 0;  // answers to the main thread
  uint64_t last_step_ = 0;
  std::map<std::pair<uint64_t, bool>, BlockRef> claims_;
  // As of the last check, by id.
  struct Seen {
    BlockRef current;
    BlockRef stale;  // the life before
    bool held = false;
  };
  std::vector<Seen> seen_;
  std::vector<BlockRef> earlier_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_WORKER_PROCESS_H_
