#include "router/front_door/request_log.h"

#include <chrono>
#include <utility>

#include "common/base/strings.h"
#include "common/telemetry/log.h"
#include "router/front_door/field_errors.h"

namespace baton::router {

std::optional<uint64_t> LineLimit::Take(MonotonicTime now) {
  if (now >= end_) {
    end_ = now + std::chrono::seconds(1);
    written_ = 0;
  }
  if (written_ == per_second_) {
    ++skipped_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(skipped_, 0);
}

void RequestLog::Ended(const End& end) {
  const MonotonicTime now = MonotonicNow();
  uint64_t skipped = 0;
  if (!end.status.ok() && end.tokens == 0) {
    std::lock_guard lock(mutex_);
    const std::optional<uint64_t> line = failures_.Take(now);
    if (!line.has_value()) return;
    skipped = *line;
  }
  log::Info("request {} ({}){}{}: {} after {:.1f} ms, {} tokens{}",
            end.id.value(), end.label, end.traceparent.empty() ? "" : " trace ",
            end.traceparent, DescribeForLog(end.status),
            Milliseconds(now - end.received), end.tokens,
            skipped == 0 ? ""
                         : StrCat("; ", skipped,
                                  " more ended without any since the last "
                                  "line of this kind"));
}

}  // namespace baton::router
