#ifndef BATON_ROUTER_FRONT_DOOR_REQUEST_LOG_H_
#define BATON_ROUTER_FRONT_DOOR_REQUEST_LOG_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"

namespace baton::router {

// So many lines a second and no more. Pure; not thread-safe.
class LineLimit {
 public:
  explicit LineLimit(uint64_t per_second) : per_second_(per_second) {}

  // Whether a line may be written now: then how many were not since the last.
  std::optional<uint64_t> Take(MonotonicTime now);

 private:
  const uint64_t per_second_;
  MonotonicTime end_{};  // of the second that is counted
  uint64_t written_ = 0;
  uint64_t skipped_ = 0;
};

// A line of the log for every request that ended; of those that ended badly
// and without a token, as all do in a storm, the first of each second. Metrics
// count all. Thread-safe.
class RequestLog {
 public:
  static constexpr uint64_t kFailuresPerSecond = 20;

  struct End {
    RequestId id;
    const std::string& label;
    const std::string& traceparent;
    const absl::Status& status;
    MonotonicTime received;
    uint64_t tokens = 0;
  };
  void Ended(const End& end);

 private:
  std::mutex mutex_;
  LineLimit failures_{kFailuresPerSecond};  // mutex_
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_REQUEST_LOG_H_
