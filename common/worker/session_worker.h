#ifndef BATON_COMMON_WORKER_SESSION_WORKER_H_
#define BATON_COMMON_WORKER_SESSION_WORKER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/session_service.h"
#include "common/worker/worker.h"
#include "proto/cluster.pb.h"

namespace baton {

// A WorkerEngine behind its gRPC service, baton.v1.PrefillWorker or
// baton.v1.DecodeWorker.
template <class Engine, class Rpc>
class SessionWorker final : public Worker {
 public:
  // `settings` are what the engine wants besides the parts.
  template <class... Settings>
  SessionWorker(WorkerParts parts, v1::WorkerHello hello,
                const Settings&... settings)
      : sessions_(std::move(hello), SessionLimits{}, MakeCallbacks()),
        service_(&sessions_),
        engine_(std::move(parts), settings...,
                [this](SessionId session, Message message) {
                  sessions_.Send(session, std::move(message));
                }) {}

  grpc::Service* service() override { return &service_; }
  std::string service_name() const override { return Rpc::service_full_name(); }
  size_t sessions() const override { return sessions_.sessions(); }
  WorkerState state() override { return engine_.state(); }
  void Drain() override { engine_.Post(DrainStarted{}); }
  void ShutDown() override { engine_.Post(baton::ShutDown{}); }
  void CloseSessions(const absl::Status& status) override {
    sessions_.CloseAll(status);
  }

 private:
  using Command = typename Engine::Command;
  using Message = typename Engine::Message;
  using Sessions = SessionService<Command, Message>;

  class Service final : public Rpc::CallbackService {
   public:
    explicit Service(Sessions* sessions) : sessions_(sessions) {}
    grpc::ServerBidiReactor<Command, Message>* Session(
        grpc::CallbackServerContext* context) override {
      return sessions_->NewSession(context);
    }

   private:
    Sessions* const sessions_;
  };

  typename Sessions::Callbacks MakeCallbacks() {
    return {
        .opened = [this](SessionId id) { engine_.Post(SessionOpened{id}); },
        .command =
            [this](SessionId id, Command command,
                   std::shared_ptr<void> receipt) {
              engine_.Post(CommandReceived<Command>{id, std::move(command),
                                                    std::move(receipt)});
            },
        .lost = [this](SessionId id) { engine_.Post(SessionLost{id}); },
    };
  }

  Sessions sessions_;
  Service service_;
  Engine engine_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_WORKER_H_
