#include "common/worker/load_progress.h"

#include "absl/strings/str_format.h"

namespace baton {

std::optional<std::string> LoadProgress::Line(uint64_t done, uint64_t total,
                                              MonotonicTime now) {
  if (done >= total || now - last_ < kInterval) return std::nullopt;
  last_ = now;
  const auto part = static_cast<double>(done) / static_cast<double>(total);
  return absl::StrFormat("loading model: %d %% of %.1f GB",
                         static_cast<int>(part * 100),
                         static_cast<double>(total) / 1e9);
}

}  // namespace baton
