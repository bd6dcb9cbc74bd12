#ifndef BATON_COMMON_WORKER_SESSION_SERVICE_H_
#define BATON_COMMON_WORKER_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/worker/session_stream.h"
#include "proto/cluster.pb.h"

namespace baton {

// The router sessions of a worker over gRPC: checks hellos, fences old
// sessions, numbers events 1, 2, 3, ... and keeps queues bounded. `Command` and
// `Event` are the stream's messages; both have a hello. Thread-safe.
//
// Callbacks run on gRPC's threads, per session in the order opened, commands,
// lost; they must only hand on.
template <class Command, class Event>
class SessionService {
 public:
  using Registry = SessionRegistry<Command, Event>;
  using Stream = SessionStream<Command, Event>;
  using Callbacks = typename Registry::Callbacks;

  // `hello` but for its protocol.
  SessionService(v1::WorkerHello hello, SessionLimits limits,
                 Callbacks callbacks)
      : registry_(std::make_shared<Registry>(std::move(hello), limits,
                                             std::move(callbacks))) {}
  // The server was shut down before.
  ~SessionService() = default;

  // What the service's rpc returns; deletes itself.
  grpc::ServerBidiReactor<Command, Event>* NewSession(
      grpc::CallbackServerContext* context) {
    auto stream = std::make_shared<Stream>(registry_, context);
    stream->Start(stream);
    return stream.get();
  }

  // Queues an event; sessions that ended are ignored.
  void Send(SessionId session, Event event) {
    if (std::shared_ptr<Stream> stream = registry_->Find(session)) {
      stream->Send(std::move(event));
    }
  }

  // Ends every session once its queue is written.
  void CloseAll(const absl::Status& status) {
    std::map<SessionId, std::shared_ptr<Stream>> streams;
    {
      std::lock_guard lock(registry_->mutex);
      streams = registry_->streams;
    }
    for (auto& [session, stream] : streams) stream->EndAfterQueue(status);
  }

  size_t sessions() const {
    std::lock_guard lock(registry_->mutex);
    return registry_->table.alive();
  }

 private:
  const std::shared_ptr<Registry> registry_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_SERVICE_H_
