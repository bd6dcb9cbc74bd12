#include "common/telemetry/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "common/base/strings.h"

namespace baton::log {
namespace {

constexpr size_t kMaxLineBytes = 4096;
constexpr size_t kQueuedLines = 8192;

std::atomic<Level> minimum_level{Level::kInfo};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::sinks::sink> MakeSink() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %L %n: %v", spdlog::pattern_time_type::utc));
  return sink;
}

struct Output {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> logger;
};

// Never destroyed: threads may log until the very end.
Output& TheOutput() {
  static Output& output = *new Output{
      nullptr, std::make_shared<spdlog::logger>("baton", MakeSink())};
  return output;
}

// The pool's destructor writes what is queued and joins its thread.
void DrainAtExit() { TheOutput().pool.reset(); }

std::string Escape(std::string_view line) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string clean;
  clean.reserve(line.size());
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      clean += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      clean += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      clean += c;
    }
  }
  return clean;
}

}  // namespace

absl::StatusOr<Level> ParseLevel(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warn") return Level::kWarn;
  if (name == "error") return Level::kError;
  return absl::InvalidArgumentError(
      StrCat("expected debug, info, warn or error (got \"", name, "\")"));
}

void InitLogging(const LogOptions& options) {
  Output& output = TheOutput();
  auto pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  auto logger = std::make_shared<spdlog::async_logger>(
      options.role, MakeSink(), pool,
      spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler([](const std::string&) {});
  output.logger = std::move(logger);
  output.pool = std::move(pool);
  minimum_level = options.level;
  std::atexit(DrainAtExit);
}

void ExitProcess(int code) {
  DrainAtExit();
  std::fflush(nullptr);
  std::_Exit(code);
}

bool Enabled(Level level) { return level >= minimum_level; }

void Write(Level level, std::string_view line) {
  const bool cut = line.size() > kMaxLineBytes;
  std::string text = Escape(line.substr(0, kMaxLineBytes));
  if (cut) text += "...";
  TheOutput().logger->log(ToSpdlog(level), "{}", text);
}

}  // namespace baton::log
