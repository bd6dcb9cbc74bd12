#ifndef BATON_TESTS_FUZZ_FUZZ_SESSIONS_H_
#define BATON_TESTS_FUZZ_FUZZ_SESSIONS_H_

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/worker/session_table.h"

namespace baton::fuzz {

// Streams of routers into a worker, without gRPC: the real SessionTable judges
// hellos; hello comes first and only once, anything else ends the stream.
template <class Command>
class FuzzSessions {
 public:
  static constexpr uint32_t kStreams = 4;
  struct Callbacks {
    std::function<void(SessionId)> opened;
    std::function<void(SessionId, Command)> command;
    std::function<void(SessionId)> lost;
  };

  explicit FuzzSessions(Callbacks callbacks)
      : callbacks_(std::move(callbacks)), table_(kStreams - 1) {}

  void Receive(uint32_t stream, Command command) {
    std::optional<SessionId>& session = streams_[stream];
    if (command.has_hello() == session.has_value()) {
      End(stream);
      return;
    }
    if (session.has_value()) {
      callbacks_.command(*session, std::move(command));
      return;
    }
    const auto admission = table_.Admit(command.hello());
    if (!admission.ok()) {
      BATON_CHECK(!admission.status().message().empty());
      return;
    }
    BATON_CHECK(admission->protocol >= kMinSessionProtocol &&
                admission->protocol <= kMaxSessionProtocol);
    if (admission->fenced) Fence(*admission->fenced);
    session = admission->session;
    BATON_CHECK(table_.alive() <= kStreams - 1);
    callbacks_.opened(*session);
  }

  void End(uint32_t stream) {
    if (!streams_[stream].has_value()) return;
    const SessionId session = *std::exchange(streams_[stream], std::nullopt);
    table_.End(session);
    callbacks_.lost(session);
  }
  std::optional<SessionId> session(uint32_t stream) const {
    return streams_[stream];
  }

 private:
  void Fence(SessionId fenced) {
    for (std::optional<SessionId>& session : streams_) {
      if (session != fenced) continue;
      session.reset();
      callbacks_.lost(fenced);
      return;
    }
    BATON_CHECK(false);
  }

  const Callbacks callbacks_;
  SessionTable table_;
  std::array<std::optional<SessionId>, kStreams> streams_;
};

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_FUZZ_SESSIONS_H_
