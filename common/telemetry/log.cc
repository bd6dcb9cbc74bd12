#include "common/telemetry/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/monotonic_time.h"
#include "common/base/strings.h"

namespace baton::log {
namespace {

constexpr size_t kMaxLineBytes = 4096;
constexpr size_t kQueuedLines = 8192;
constexpr Duration kTellInterval = std::chrono::seconds(1);
constexpr Duration kDrainTimeout = std::chrono::seconds(1);

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

// What is lost before it reaches the sink is in the pool's own count.
std::atomic<uint64_t> unwritten_lines{0};

// Standard error.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!WriteAll({line.data(), line.size()})) {
      ++unwritten_lines;
      return;
    }
    const uint64_t dropped = DroppedLines();
    const MonotonicTime now = MonotonicNow();
    if (dropped <= told_ || now < tell_again_) return;
    tell_again_ = now + kTellInterval;
    const std::string text =
        StrCat(dropped - told_, " log lines were lost, ", dropped, " in all");
    told_ = dropped;
    line.clear();
    formatter_->format({message.logger_name, spdlog::level::warn, text}, line);
    WriteAll({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  static bool WriteAll(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  uint64_t told_ = 0;
  MonotonicTime tell_again_{};
};

std::shared_ptr<spdlog::sinks::sink> MakeSink() {
  auto sink = std::make_shared<StderrSink>();
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %L %n: %v", spdlog::pattern_time_type::utc));
  return sink;
}

// Never destroyed: threads may log until the very end, and one may hang in
// what nobody reads.
struct Output {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> logger;
  bool drained = false;
};

Output& TheOutput() {
  static Output& output = *new Output{
      {}, {}, nullptr, std::make_shared<spdlog::logger>("baton", MakeSink())};
  return output;
}

// The pool's destructor writes what is queued and joins its thread.
void DrainAtExit() {
  Output& output = TheOutput();
  std::unique_lock lock(output.mutex);
  if (output.pool == nullptr) return;
  std::thread([&output, pool = std::move(output.pool)]() mutable {
    pool.reset();
    std::lock_guard done(output.mutex);
    output.drained = true;
    output.changed.notify_all();
  }).detach();
  output.changed.wait_for(lock, kDrainTimeout, [&] { return output.drained; });
}

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
  {
    std::lock_guard lock(output.mutex);
    output.pool = std::move(pool);
  }
  minimum_level = options.level;
  std::atexit(DrainAtExit);
}

uint64_t DroppedLines() {
  Output& output = TheOutput();
  std::lock_guard lock(output.mutex);
  const uint64_t overrun =
      output.pool == nullptr ? 0 : output.pool->overrun_counter();
  return unwritten_lines + overrun;
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
