#include "tests/simulation/monitor.h"

#include <cstdio>

#include "common/base/strings.h"

namespace baton::simulation {

void Monitor::Count(std::string_view what, uint64_t times) {
  auto it = counts_.find(what);
  if (it == counts_.end()) it = counts_.emplace(what, 0).first;
  it->second += times;
}

void Monitor::Violation(std::string_view who, std::string_view what) {
  if (trace_) Trace(who, StrCat("VIOLATION ", what));
  if (!violation_.has_value()) violation_ = Line(who, what);
}

void Monitor::Trace(std::string_view who, std::string_view what) const {
  std::puts(Line(who, what).c_str());
}

std::string Monitor::Line(std::string_view who, std::string_view what) const {
  char time[32];
  std::snprintf(time, sizeof(time), "%12.6f s  ",
                Seconds(events_->now().time_since_epoch()));
  return StrCat(time, who, ": ", what);
}

}  // namespace baton::simulation
