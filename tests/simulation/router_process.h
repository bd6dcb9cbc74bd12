#ifndef BATON_TESTS_SIMULATION_ROUTER_PROCESS_H_
#define BATON_TESTS_SIMULATION_ROUTER_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "router/request_flow/router_core.h"
#include "tests/simulation/client.h"
#include "tests/simulation/decode_process.h"
#include "tests/simulation/prefill_process.h"
#include "tests/simulation/process.h"
#include "tests/simulation/worker_process.h"

namespace baton::simulation {

// How routers reach workers: by place, whoever lives there now.
class WorkerDirectory {
 public:
  virtual ~WorkerDirectory() = default;
  virtual size_t size() const = 0;
  virtual std::string name(size_t place) const = 0;
  virtual v1::WorkerRole role(size_t place) const = 0;
  // False when nobody lives there.
  virtual bool Dial(size_t place, std::shared_ptr<PrefillStream> stream) = 0;
  virtual bool Dial(size_t place, std::shared_ptr<DecodeStream> stream) = 0;
};

struct RouterShape {
  router::RouterOptions options;
  std::string policy = "least_loaded";
  StreamDelays streams;
  double repeat_command = 0;  // a command is sent twice
};

// One life of a router: the driver of its core, with its worker sessions and
// its clients.
class RouterProcess : public Process {
 public:
  // `directory` outlives the process.
  RouterProcess(Environment environment, Random random, std::string name,
                RouterEpoch epoch, const RouterShape& shape,
                WorkerDirectory* directory, std::function<void()> on_death);
  // The process died.
  ~RouterProcess() override;

  RouterEpoch epoch() const { return epoch_; }
  // The client outlives the process.
  void Submit(Client* client);
  void Cancel(Client* client);
  // As SIGTERM does: refuses what is new, ends what is left after `patience`,
  // then calls `exited`.
  void Drain(Duration patience, std::function<void()> exited);
  bool draining() const { return draining_; }
  // The connection to a worker breaks, if there is one.
  void BreakSession(size_t place);
  // The worker is no member any more, for so long or until Heal().
  void Remove(size_t place, Duration pause);
  void Heal();

  const router::RouterCore& core() const { return core_; }
  // Without work, a session may start about a step's tokens: empty, or the
  // worker that has kept the credit of work long over.
  std::string Starved() const;

 private:
  struct Session {
    uint64_t number = 0;
    bool member = true;
    uint64_t memberships = 1;
    bool up = false;
    uint64_t step_tokens = 0;  // at most
    // Prompts of at most, and of more than step_tokens.
    struct Credit {
      uint64_t started = 0;
      uint64_t granted = 0;
    };
    Credit short_prompts, long_prompts;
    uint64_t next_step_tokens = 0;
    std::shared_ptr<PrefillStream> prefill;
    std::shared_ptr<DecodeStream> decode;
  };

  void Post(router::Event event);
  void Handle(router::Event event);
  void CheckOver(RequestId id);
  void CheckBounds();
  void LookWhetherDrained();
  void OnClockJump() override { alarm_.Reconsider(); }
  void Do(router::SendToPrefill action);
  void Do(router::SendToDecode action);
  void Do(router::EmitToClient action);
  void Do(router::HeldBack) {}  // clients see nothing of it
  void Do(router::FinishClient action);
  void Do(router::CloseSession action);
  void Do(router::OpenSession action);

  void AddAgain(size_t place);
  void Connect(size_t place);
  void ReconnectLater(size_t place);
  template <class Command, class Event>
  void Connect(size_t place,
               std::shared_ptr<SimStream<Command, Event>> Session::* stream);
  template <class Event>
  void Received(size_t place, Event event);
  void Lost(size_t place, std::string_view why);

  void Started(Session* session, const v1::SequenceSpec& sequence);
  void Note(const v1::SequenceSpec& sequence, uint64_t attempt,
            std::string_view phase);
  void Note(uint64_t attempt, std::string_view phase);
  void TraceMessage(size_t place, std::string_view direction,
                    const google::protobuf::Message& message) const;
  void Observe(const v1::PrefillEvent& event);
  void Observe(const v1::DecodeEvent& event);

  const RouterEpoch epoch_;
  const RouterShape shape_;
  WorkerDirectory* directory_;
  router::RouterCore core_;
  Thread main_thread_;
  Alarm alarm_;
  bool draining_ = false;
  std::function<void()> exited_;
  std::vector<Session> sessions_;
  uint64_t next_request_ = 1;
  std::map<RequestId, Client*> clients_;  // not ended
  uint64_t submitted_ = 0;                // of them
  std::map<uint64_t, Client*> by_seed_;
  std::map<uint64_t, Client*> by_attempt_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_ROUTER_PROCESS_H_
