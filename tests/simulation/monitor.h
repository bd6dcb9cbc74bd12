#ifndef BATON_TESTS_SIMULATION_MONITOR_H_
#define BATON_TESTS_SIMULATION_MONITOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

// What happened in one simulation: counts by name, the first violation of a
// property, and the trace if wanted.
class Monitor {
 public:
  // `events` outlives the monitor.
  Monitor(const EventQueue* events, bool trace)
      : events_(events), trace_(trace) {}

  MonotonicTime now() const { return events_->now(); }
  void Count(std::string_view what, uint64_t times = 1);
  const std::map<std::string, uint64_t, std::less<>>& counts() const {
    return counts_;
  }

  // A property does not hold. Only the first is kept.
  void Violation(std::string_view who, std::string_view what);
  const std::optional<std::string>& violation() const { return violation_; }

  bool tracing() const { return trace_; }
  // Prints a line with the time to standard output.
  void Trace(std::string_view who, std::string_view what) const;

 private:
  std::string Line(std::string_view who, std::string_view what) const;

  const EventQueue* events_;
  bool trace_;
  std::map<std::string, uint64_t, std::less<>> counts_;
  std::optional<std::string> violation_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_MONITOR_H_
