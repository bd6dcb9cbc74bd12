#ifndef BATON_ROUTER_CLIENT_CLI_CHILD_PROCESS_H_
#define BATON_ROUTER_CLIENT_CLI_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"

namespace baton::cli {

// A process that `baton up` started. It is in a process group of its own, so
// that Ctrl-C reaches only the parent, and is killed by the kernel when the
// thread that started it ends. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::string name;  // for messages: "decode-0"
    std::string binary;
    std::vector<std::string> arguments;
    // Where its output goes; empty: to standard error, each line with the name
    // in front.
    std::string log_file;
  };

  // NotFound when the binary does not exist; other errors name it and carry
  // errno's text.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);
  // Kills and reaps it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return options_.name; }
  const std::string& log_file() const { return options_.log_file; }

  bool Running();
  // Nothing happens to a process that has ended.
  void Signal(int signal);
  // True when it ended in time.
  bool WaitExit(Duration timeout);
  bool ExitedCleanly() const;
  // "exited with status 1", "was killed by signal 9 (Killed)".
  std::string ExitText() const;
  // The last lines of the log file, at most 2 KiB.
  std::string LogTail() const;

 private:
  explicit ChildProcess(Options options);
  absl::Status Spawn();

  const Options options_;
  pid_t pid_ = -1;
  std::optional<int> wait_status_;
  std::thread output_;
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_CHILD_PROCESS_H_
