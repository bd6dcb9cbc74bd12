#ifndef BATON_COMMON_WORKER_LOAD_PROGRESS_H_
#define BATON_COMMON_WORKER_LOAD_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/monotonic_time.h"

namespace baton {

// When the log should hear how far the loading of a model is: every two
// seconds, so not at all for small files.
class LoadProgress {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(2);

  explicit LoadProgress(MonotonicTime now) : last_(now) {}

  // "loading model: 43 % of 1.2 GB", or nothing yet. `done` of `total` bytes.
  std::optional<std::string> Line(uint64_t done, uint64_t total,
                                  MonotonicTime now);

 private:
  MonotonicTime last_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_LOAD_PROGRESS_H_
