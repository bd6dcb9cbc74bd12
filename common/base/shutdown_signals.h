#ifndef BATON_COMMON_BASE_SHUTDOWN_SIGNALS_H_
#define BATON_COMMON_BASE_SHUTDOWN_SIGNALS_H_

#include <functional>
#include <thread>

namespace baton {

// Turns SIGTERM, SIGINT and (unless it is ignored, as under nohup) SIGHUP into
// calls on an ordinary thread and ignores SIGPIPE. Create it first thing in
// main: threads started earlier would still be killed by the signals. Programs
// started by exec inherit the blocked signals; RestoreSignals() undoes that
// between fork and exec.
class ShutdownSignals {
 public:
  // `callback(signal)` runs for every signal, one at a time, on a thread of
  // this object; it may be called again while the process is shutting down.
  explicit ShutdownSignals(std::function<void(int signal)> callback);
  // Waits for a running callback. The signals stay blocked.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // Async-signal-safe: unblocks and resets what the constructor changed.
  static void RestoreSignals();

 private:
  void Run();

  const std::function<void(int)> callback_;
  int signal_fd_;
  int stop_fd_;
  std::thread thread_;
};

}  // namespace baton

#endif  // BATON_COMMON_BASE_SHUTDOWN_SIGNALS_H_
