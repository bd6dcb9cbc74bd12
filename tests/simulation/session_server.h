#ifndef BATON_TESTS_SIMULATION_SESSION_SERVER_H_
#define BATON_TESTS_SIMULATION_SESSION_SERVER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "proto/cluster.pb.h"
#include "tests/simulation/sim_stream.h"

namespace baton::simulation {

// A worker's end of its router sessions: hello, numbering, fencing. What
// arrives is handled on the process's main thread. A hello
// with a higher session number of the same router ends the older session at
// once, whether or not its stream's loss was noticed.
template <class Command, class Event>
class SessionServer {
 public:
  using Stream = SimStream<Command, Event>;
  struct Callbacks {
    std::function<void(SessionId)> opened;
    std::function<void(SessionId)> lost;
    std::function<void(SessionId, Command)> received;
  };

  // `post` queues a task for the main thread.
  SessionServer(v1::WorkerHello hello,
                std::function<void(EventQueue::Task)> post, Callbacks callbacks)
      : hello_(std::move(hello)),
        post_(std::move(post)),
        callbacks_(std::move(callbacks)) {}
  // The process died: routers notice by themselves.
  ~SessionServer() {
    for (const Connection& connection : connections_) {
      connection.stream->Break();
      connection.stream->CloseWorkerEnd();
    }
  }

  void Accept(std::shared_ptr<Stream> stream) {
    connections_.push_back({stream, SessionId()});
    stream->worker().on_message = [this, s = stream.get()](Command command) {
      post_([this, s = s->shared_from_this(), command = std::move(command)] {
        Received(s.get(), command);
      });
    };
    stream->worker().on_closed = [this, s = stream.get()] {
      post_([this, s = s->shared_from_this()] { Lost(s.get()); });
    };
  }

  bool empty() const { return sessions_.empty(); }
  // Ignored when the session is over.
  void Send(SessionId id, Event event) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    event.set_sequence(it->second.next_event++);
    it->second.stream->SendToRouter(std::move(event));
  }

 private:
  struct Session {
    std::shared_ptr<Stream> stream;
    uint64_t router_epoch = 0;
    uint64_t number = 0;
    uint64_t next_event = 1;
  };

  struct Connection {
    std::shared_ptr<Stream> stream;
    SessionId session;  // 0 before its hello
  };

  auto Find(const Stream* stream) {
    return std::find_if(
        connections_.begin(), connections_.end(),
        [&](const Connection& c) { return c.stream.get() == stream; });
  }

  void Received(Stream* stream, Command command) {
    const auto connection = Find(stream);
    if (connection == connections_.end()) return;  // ended meanwhile
    const SessionId id = connection->session;
    if (command.has_hello()) {
      if (id == SessionId()) Open(stream, command.hello());
    } else if (id != SessionId()) {
      callbacks_.received(id, std::move(command));
    }
  }

  void Open(Stream* stream, const v1::RouterHello& hello) {
    for (const auto& [id, session] : sessions_) {
      if (session.router_epoch != hello.router_epoch()) continue;
      if (session.number >= hello.session()) return End(stream);
      End(session.stream.get());
      break;
    }
    const SessionId id(next_session_++);
    const auto connection = Find(stream);
    connection->session = id;
    sessions_[id] = {connection->stream, hello.router_epoch(), hello.session()};
    Event event;
    *event.mutable_hello() = hello_;
    Send(id, std::move(event));
    callbacks_.opened(id);
  }

  void End(Stream* stream) {
    stream->CloseByWorker();
    Lost(stream);
  }

  void Lost(const Stream* stream) {
    const auto it = Find(stream);
    if (it == connections_.end()) return;
    const Connection gone = *it;
    connections_.erase(it);
    if (sessions_.erase(gone.session) > 0) callbacks_.lost(gone.session);
  }

  v1::WorkerHello hello_;
  std::function<void(EventQueue::Task)> post_;
  Callbacks callbacks_;
  uint64_t next_session_ = 1;
  std::vector<Connection> connections_;
  std::map<SessionId, Session> sessions_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SESSION_SERVER_H_
