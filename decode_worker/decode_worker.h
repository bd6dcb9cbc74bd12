#ifndef BATON_DECODE_WORKER_DECODE_WORKER_H_
#define BATON_DECODE_WORKER_DECODE_WORKER_H_

#include <string>

#include "common/worker/session_service.h"
#include "common/worker/worker.h"
#include "decode_worker/decode_engine.h"
#include "proto/decode.grpc.pb.h"

namespace baton::decode {

// A DecodeEngine behind the gRPC service baton.v1.DecodeWorker.
class DecodeWorker final : public Worker {
 public:
  DecodeWorker(WorkerParts parts, const DecodeSettings& settings,
               v1::WorkerHello hello);

  grpc::Service* service() override { return &service_; }
  std::string service_name() const override {
    return v1::DecodeWorker::service_full_name();
  }
  size_t sessions() const override { return sessions_.sessions(); }
  WorkerState state() override { return engine_.state(); }
  void Drain() override { engine_.Post(DrainStarted{}); }
  void ShutDown() override { engine_.Post(baton::ShutDown{}); }
  void CloseSessions(const absl::Status& status) override {
    sessions_.CloseAll(status);
  }

 private:
  using Sessions = SessionService<v1::DecodeCommand, v1::DecodeEvent>;

  class Service final : public v1::DecodeWorker::CallbackService {
   public:
    explicit Service(Sessions* sessions) : sessions_(sessions) {}
    grpc::ServerBidiReactor<v1::DecodeCommand, v1::DecodeEvent>* Session(
        grpc::CallbackServerContext* context) override {
      return sessions_->NewSession(context);
    }

   private:
    Sessions* const sessions_;
  };

  Sessions::Callbacks MakeCallbacks();

  Sessions sessions_;
  Service service_;
  DecodeEngine engine_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_WORKER_H_
