#ifndef BATON_TESTS_SIMULATION_PREFILL_PROCESS_H_
#define BATON_TESTS_SIMULATION_PREFILL_PROCESS_H_

#include <functional>
#include <memory>
#include <string>

#include "prefill_worker/prefill_scheduler.h"
#include "proto/prefill.pb.h"
#include "tests/simulation/session_server.h"
#include "tests/simulation/worker_process.h"

namespace baton::simulation {

using PrefillStream = SimStream<v1::PrefillCommand, v1::PrefillEvent>;

// One life of a prefill worker: the driver of its scheduler.
class PrefillProcess : public WorkerProcess {
 public:
  PrefillProcess(Environment environment, Random random, std::string name,
                 WorkerEpoch epoch, const WorkerShape& shape,
                 std::function<void()> on_death);

  void Accept(std::shared_ptr<PrefillStream> stream);

  const BlockPool& pool() const override { return scheduler_.pool(); }
  bool idle() const override { return scheduler_.idle(); }
  bool healthy() const override { return scheduler_.healthy(); }
  const prefill::PrefillScheduler& scheduler() const { return scheduler_; }

 private:
  void Handle(prefill::Event event);
  void Do(RunStep action);
  void Do(prefill::OpenTransfer action);
  void Do(prefill::PushBlock action);
  void Do(prefill::SealTransfer action);
  void Do(prefill::AbortTransfer action);
  void Do(prefill::SendEvent action);

  void TimePassed() override { Handle(Tick{}); }
  void DrainStarts() override { Handle(DrainStarted{}); }
  void ShutsDown() override { Handle(ShutDown{}); }
  void StepFinished(uint64_t number, StepResult result) override;
  void TransferHappened(transfer::TransferEvent event) override;

  prefill::PrefillScheduler scheduler_;
  SessionServer<v1::PrefillCommand, v1::PrefillEvent> sessions_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_PREFILL_PROCESS_H_
