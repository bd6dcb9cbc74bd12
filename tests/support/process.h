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

// One child process of the test: a real Baton binary with its log in a file.
// Killed and reaped with the object.
class Process {
 public:
  // Starts `binary` from the build's bin folder. `ready_file` is passed as
  // --ready-file; environment entries are added to the test's own.
  static absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::string& binary, std::vector<std::string> flags,
      const std::string& work_dir, const std::string& name,
      const std::map<std::string, std::string>& environment = {});
  ~Process();

  // Waits for the ready file; the error holds the end of the log.
  absl::Status WaitReady(Duration timeout);
  const std::string& address() const { return address_; }
  const std::string& admin() const { return admin_; }
  // Of the decode worker, where one process runs both.
  const std::string& decode_address() const { return decode_address_; }
  pid_t pid() const { return pid_; }
  bool alive();

  void Signal(int signal);
  // Waits for the end and returns the wait status; DEADLINE_EXCEEDED leaves
  // the process running.
  absl::StatusOr<int> WaitExit(Duration timeout);

  // GET on the admin port; the body, whatever the HTTP status.
  absl::StatusOr<std::string> AdminGet(const std::string& path) const;
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
