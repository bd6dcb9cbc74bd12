#ifndef BATON_COMMON_WORKER_SESSION_REGISTRY_H_
#define BATON_COMMON_WORKER_SESSION_REGISTRY_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/worker/session_table.h"
#include "proto/cluster.pb.h"

namespace baton {

struct SessionLimits {
  size_t max_sessions = 64;
  Duration hello_timeout = std::chrono::seconds(10);
  // Events waiting for a router that does not read; one more ends the session.
  size_t max_queued_events = 4096;
  size_t max_queued_bytes = size_t{64} << 20;
  // Commands received and not handled yet; more are not read.
  size_t max_unhandled_commands = 256;
};

template <class Command, class Event>
class SessionStream;

// What the sessions of one service share.
template <class Command, class Event>
struct SessionRegistry {
  struct Callbacks {
    std::function<void(SessionId)> opened;
    // `receipt` is dropped when the command was handled.
    std::function<void(SessionId, Command, std::shared_ptr<void> receipt)>
        command;
    std::function<void(SessionId)> lost;
  };
  using Stream = SessionStream<Command, Event>;

  SessionRegistry(v1::WorkerHello h, SessionLimits l, Callbacks c)
      : hello(std::move(h)),
        limits(l),
        callbacks(std::move(c)),
        table(l.max_sessions) {}

  std::shared_ptr<Stream> Find(SessionId session) {
    std::lock_guard lock(mutex);
    auto it = streams.find(session);
    return it == streams.end() ? nullptr : it->second;
  }

  const v1::WorkerHello hello;
  const SessionLimits limits;
  const Callbacks callbacks;
  mutable std::mutex mutex;
  SessionTable table;                                    // mutex
  std::map<SessionId, std::shared_ptr<Stream>> streams;  // mutex
  size_t calls = 0;                                      // mutex
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_REGISTRY_H_
