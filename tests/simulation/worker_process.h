#ifndef BATON_TESTS_SIMULATION_WORKER_PROCESS_H_
#define BATON_TESTS_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/kv_cache/block_pool.h"
#include "common/kv_cache/kv_memory.h"
#include "common/worker/step_plan.h"
#include "kv_transfer/transfer_core.h"
#include "proto/cluster.pb.h"
#include "tests/simulation/monitor.h"
#include "tests/simulation/sim_transport.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

struct WorkerShape {
  uint32_t blocks = 64;
  uint32_t step_token_budget = 64;
  uint32_t max_context_tokens = 256;
  uint32_t max_sequences = 16;
  v1::Disaggregation disaggregation = v1::DISAGGREGATION_ALWAYS;
  uint32_t local_prefill_max_tokens = 16;
  bool static_batching = false;
  Duration landing_timeout = std::chrono::seconds(5);
  Duration step_time = std::chrono::milliseconds(1);
  Duration row_time = std::chrono::microseconds(50);
};

// What every process of a cluster shares. Pointers outlive the processes.
struct Environment {
  EventQueue* events = nullptr;
  SimNetwork* network = nullptr;
  Monitor* monitor = nullptr;
};

// An alarm clock for a pure core: rings once at the last time it was set to.
class Alarm {
 public:
  Alarm(EventQueue* events, std::function<void()> ring)
      : events_(events),
        ring_(std::make_shared<std::function<void()>>(std::move(ring))) {}
  void Set(MonotonicTime when);

 private:
  EventQueue* events_;
  std::shared_ptr<std::function<void()>> ring_;  // dies with the alarm
  std::shared_ptr<MonotonicTime> due_ = std::make_shared<MonotonicTime>(kNever);
};

// One life of a worker process but for its scheduler: block memory, a transfer
// core on a "thread" of its own, a compute "thread". Threads talk through
// queues with delays, so that what can interleave does. Checks after every
// event that nobody uses a block that its holder has let go of.
class WorkerProcess {
 public:
  WorkerProcess(Environment environment, Random random, std::string name,
                WorkerEpoch epoch, const WorkerShape& shape);
  virtual ~WorkerProcess();

  const std::string& name() const { return name_; }
  WorkerEpoch epoch() const { return epoch_; }
  virtual const BlockPool& pool() const = 0;
  virtual bool idle() const = 0;
  const transfer::TransferCore& transfers() const { return *core_; }

  // As SIGSTOP and SIGCONT do: nothing of the process runs until then.
  void FreezeUntil(MonotonicTime when);

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

  // On the main thread.
  virtual void StepFinished(uint64_t number, StepResult result) = 0;
  virtual void TransferHappened(transfer::TransferEvent event) = 0;

  void OnMainThread(EventQueue::Task task) {
    main_thread_.Post(std::move(task));
  }
  // Call after everything the main thread did.
  void CheckAll();
  v1::WorkerHello Hello(v1::WorkerRole role) const;

  Environment environment_;
  Random random_;

 private:
  // Tasks in order, each after a short delay.
  class Thread {
   public:
    Thread(WorkerProcess* process, Duration max_delay)
        : process_(process), max_delay_(max_delay) {}
    void Post(EventQueue::Task task);

   private:
    WorkerProcess* process_;
    Duration max_delay_;
    std::deque<EventQueue::Task> tasks_;
  };

  // Runs `task` unless the process has died by then.
  void Later(Duration delay, EventQueue::Task task);
  void RunUnlessFrozen(EventQueue::Task task);
  void OnTransferThread(EventQueue::Task task);
  void PollTransfers();
  void Noted(const transfer::TransferEvent& event);
  void Compute(const StepPlan& plan, StepResult* result);
  bool CheckPlan(const StepPlan& plan);
  void CheckHeld(absl::Span<const BlockRef> blocks,
                 std::initializer_list<BlockUse> uses, std::string_view what);
  void CheckClaims();
  void CheckFences();
  void Violation(std::string_view what);

  const std::string name_;
  const WorkerEpoch epoch_;
  const WorkerShape shape_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  MonotonicTime frozen_until_{};
  std::unique_ptr<KvMemory> memory_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<transfer::TransferCore> core_;
  Thread transfer_thread_;
  Thread main_thread_;
  Alarm poll_alarm_;
  bool poll_posted_ = false;

  // What is in use at this moment, as the transfer core and the compute thread
  // see it.
  std::map<LandingId, std::vector<BlockRef>> landings_;
  std::map<TransferId, std::vector<BlockRef>> pushes_;
  std::unique_ptr<StepPlan> step_;
  uint64_t last_step_ = 0;
  std::map<std::pair<uint64_t, bool>, BlockRef> claims_;
  // As of the last check, by id.
  struct Seen {
    BlockRef current;
    BlockRef stale;  // the life before
    bool held = false;
  };
  std::vector<Seen> seen_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_WORKER_PROCESS_H_
