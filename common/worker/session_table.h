#ifndef BATON_COMMON_WORKER_SESSION_TABLE_H_
#define BATON_COMMON_WORKER_SESSION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/cluster.pb.h"

namespace baton {

// Session protocols that this build speaks.
inline constexpr uint32_t kMinSessionProtocol = 1;
inline constexpr uint32_t kMaxSessionProtocol = 1;

// Which router sessions are alive and which are fenced. Pure, not thread-safe.
class SessionTable {
 public:
  // At most `max_sessions` alive at once; the numbers of routers gone are
  // remembered for as many more.
  explicit SessionTable(size_t max_sessions) : max_sessions_(max_sessions) {}

  struct Admission {
    SessionId session;
    uint32_t protocol = 0;
    std::optional<SessionId> fenced;  // ends now
  };
  // INVALID_ARGUMENT for a malformed hello, FAILED_PRECONDITION without a
  // common protocol, ABORTED when a session with the same or a higher number
  // was seen, RESOURCE_EXHAUSTED at the limit.
  absl::StatusOr<Admission> Admit(const v1::RouterHello& hello);

  // Fenced and unknown sessions are ignored.
  void End(SessionId session);

  size_t alive() const { return alive_.size(); }

 private:
  struct Router {
    uint64_t highest = 0;
    std::optional<SessionId> session;
    uint64_t seen = 0;  // order of hellos
  };
  void ForgetOldest();

  const size_t max_sessions_;
  std::map<RouterEpoch, Router> routers_;
  std::map<SessionId, RouterEpoch> alive_;
  uint64_t next_session_ = 1;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_TABLE_H_
