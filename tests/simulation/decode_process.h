#ifndef BATON_TESTS_SIMULATION_DECODE_PROCESS_H_
#define BATON_TESTS_SIMULATION_DECODE_PROCESS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decode_worker/decode_scheduler.h"
#include "proto/decode.pb.h"
#include "tests/simulation/session_server.h"
#include "tests/simulation/worker_process.h"

namespace baton::simulation {

using DecodeStream = SimStream<v1::DecodeCommand, v1::DecodeEvent>;

// One life of a decode worker: the driver of its scheduler.
class DecodeProcess : public WorkerProcess {
 public:
  DecodeProcess(Environment environment, Random random, std::string name,
                WorkerEpoch epoch, const WorkerShape& shape,
                std::function<void()> on_death);

  void Accept(std::shared_ptr<DecodeStream> stream);

  const BlockPool& pool() const override { return scheduler_.pool(); }
  const BlockPool* draft_pool() const override {
    return scheduler_.draft_pool();
  }
  bool idle() const override { return scheduler_.idle(); }
  bool healthy() const override { return scheduler_.healthy(); }
  const decode::DecodeScheduler& scheduler() const { return scheduler_; }

 private:
  void Handle(decode::Event event);
  void CheckGrowth();
  // Who waits long is not overtaken; `accepted` or refused for want of room.
  struct Asked {
    SessionId session;
    uint64_t attempt = 0;
    uint64_t request = 0;
    uint32_t priority = 0;
    MonotonicTime since;  // as this command says
    MonotonicTime first;  // the earliest that a command of the request said
    uint64_t most_blocks = 0;  // that it can ever need
    bool SameAs(const Asked& other) const {
      return session == other.session && request == other.request;
    }
  };
  std::optional<Asked> AskedBy(const decode::Event& event);
  void CheckTurn(const Asked& asked,
                 const std::vector<decode::Action>& actions);
  void CheckPromise(const Asked& asked, uint32_t spare,
                    const std::vector<decode::Action>& actions);
  void Do(RunStep action);
  void Do(decode::OpenLanding action);
  void Do(decode::CancelLanding action);
  void Do(decode::SendEvent action);

  void TimePassed() override { Handle(Tick{}); }
  void DrainStarts() override { Handle(DrainStarted{}); }
  void ShutsDown() override { Handle(ShutDown{}); }
  void StepFinished(uint64_t number, StepResult result) override;
  void TransferHappened(transfer::TransferEvent event) override;

  decode::DecodeScheduler scheduler_;
  std::map<std::pair<SessionId, uint64_t>, MonotonicTime> waits_since_;
  std::optional<Asked> refused_;  // after a long wait
  MonotonicTime refused_at_;
  uint64_t preemptions_ = 0, landings_given_up_ = 0, given_up_ = 0;
  uint64_t pushed_returns_ = 0, recomputed_returns_ = 0;
  uint64_t failed_fetches_ = 0, refused_fetches_ = 0;
  MonotonicTime fetching_since_ = kNever, overdue_since_ = kNever;
  // Attempts wait for blocks, and no step is made.
  MonotonicTime standing_since_ = kNever;
  SessionServer<v1::DecodeCommand, v1::DecodeEvent> sessions_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_DECODE_PROCESS_H_
