#ifndef BATON_COMMON_TELEMETRY_LOG_H_
#define BATON_COMMON_TELEMETRY_LOG_H_

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace baton::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// "debug", "info", "warn" or "error"; InvalidArgument for anything else.
absl::StatusOr<Level> ParseLevel(std::string_view name);

struct LogOptions {
  Level level = Level::kInfo;
  std::string role = "baton";  // shown in every line
};

// One line per call on standard error:
//   2025-01-31T12:00:00.000Z I decode: worker ready
// A thread of its own writes; when it cannot keep up (a blocked pipe) the
// oldest lines are dropped, so no caller ever waits. Lines that cannot be
// written (a full disk, a closed pipe) are dropped too; a line says how many
// were once that works again. Control characters are escaped and a line ends
// after 4 KiB. Prompts and generated text are never logged. Thread-safe once
// InitLogging has returned; before that, lines are written synchronously at
// level info. Lines still queued are written when the process exits, for at
// most a second; call it once.
void InitLogging(const LogOptions& options);

// Lines dropped so far.
uint64_t DroppedLines();

// Writes what is queued, for at most a second, and ends the process without
// running destructors. Servers end with it once they have drained: gRPC 1.51
// now and then aborts while its callback threads are torn down.
[[noreturn]] void ExitProcess(int code);

bool Enabled(Level level);
void Write(Level level, std::string_view line);

template <class... Args>
void Log(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (!Enabled(level)) return;
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), format, std::forward<Args>(args)...);
  Write(level, std::string_view(line.data(), line.size()));
}

// {}-style formats, checked at compile time: log::Info("{} blocks", n).
template <class... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  Log(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  Log(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void Warn(fmt::format_string<Args...> format, Args&&... args) {
  Log(Level::kWarn, format, std::forward<Args>(args)...);
}
template <class... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  Log(Level::kError, format, std::forward<Args>(args)...);
}

}  // namespace baton::log

#endif  // BATON_COMMON_TELEMETRY_LOG_H_
