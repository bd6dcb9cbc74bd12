#ifndef BATON_PREFILL_WORKER_PREFILL_WORKER_H_
#define BATON_PREFILL_WORKER_PREFILL_WORKER_H_

#include <string>

#include "common/worker/session_service.h"
#include "common/worker/worker.h"
#include "prefill_worker/prefill_engine.h"
#include "proto/prefill.grpc.pb.h"

namespace baton::prefill {

// A PrefillEngine behind the gRPC service baton.v1.PrefillWorker.
class PrefillWorker final : public Worker {
 public:
  PrefillWorker(WorkerParts parts, v1::WorkerHello hello);

  grpc::Service* service() override { return &service_; }
  std::string service_name() const override {
    return v1::PrefillWorker::service_full_name();
  }
  size_t sessions() const override { return sessions_.sessions(); }
  WorkerState state() override { return engine_.state(); }
  void Drain() override { engine_.Post(DrainStarted{}); }
  void ShutDown() override { engine_.Post(baton::ShutDown{}); }
  void CloseSessions(const absl::Status& status) override {
    sessions_.CloseAll(status);
  }

 private:
  using Sessions = SessionService<v1::PrefillCommand, v1::PrefillEvent>;

  class Service final : public v1::PrefillWorker::CallbackService {
   public:
    explicit Service(Sessions* sessions) : sessions_(sessions) {}
    grpc::ServerBidiReactor<v1::PrefillCommand, v1::PrefillEvent>* Session(
        grpc::CallbackServerContext* context) override {
      return sessions_->NewSession(context);
    }

   private:
    Sessions* const sessions_;
  };

  Sessions::Callbacks MakeCallbacks();

  Sessions sessions_;
  Service service_;
  PrefillEngine engine_;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_WORKER_H_
