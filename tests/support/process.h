#ifndef BATON_TESTS_SUPPORT_PROCESS_H_
#define BATON_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"

namespace baton::testing {

// How to start a process.
struct Launch {
  std::string binary;  // in the build's bin folder or $BATON_BIN_DIR
  std::vector<std::string> flags;
  std::string name;
  std::string work_dir;  // for its ready file and log
  // Added to the test's own.
  std::map<std::string, std::string> environment = {};
  int network = -1;           // network namespace; -1: the test's own
  int log_fd = -1;            // its output instead of a file
  std::string log_file = "";  // instead of <work_dir>/<name>.log
};

// One child process of the test: a real Baton binary with its log in a file.
// Killed and reaped with the object.
class Process {
 public:
  // The ready file is passed as --ready-file.
  static absl::StatusOr<std::unique_ptr<Process>> Start(Launch launch);
  ~Process();

  // Waits for the ready file; the error holds the end of the log.
  absl::Status WaitReady(Duration timeout);
  const std::string& address() const { return address_; }
  const std::string& admin() const { return admin_; }
  // Of the decode worker, where one process runs both.
  const std::string& decode_address() const { return decode_address_; }
  const std::string& name() const { return name_; }
  const std::string& log_file() const { return log_file_; }
  pid_t pid() const { return pid_; }
  bool alive();

  void Signal(int signal);
  // Waits for the end and returns the wait status; DEADLINE_EXCEEDED leaves
  // the process running.
  absl::StatusOr<int> WaitExit(Duration timeout);

  // GET on the admin port; the body, whatever the HTTP status. UNAVAILABLE
  // when there is no whole answer within `limit`.
  absl::StatusOr<std::string> AdminGet(
      const std::string& path, Duration limit = std::chrono::seconds(5)) const;
  // Sum over the series of /metrics with this name whose line holds
  // `label_text`, for instance `state="free"`; NOT_FOUND when there is none.
  absl::StatusOr<double> Metric(const std::string& name,
                                const std::string& label_text = "") const;
  std::string LogTail(size_t bytes = 4000) const;

 private:
  Process() = default;
  pid_t pid_ = -1;
  std::string name_, ready_file_, log_file_, address_, admin_, decode_address_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_PROCESS_H_
