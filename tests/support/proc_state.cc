#include "tests/support/proc_state.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::testing {
namespace {

// Fields of /proc/PID/stat after the command, which may hold anything: state
// is number 0.
std::vector<std::string> StatFields(const std::string& folder) {
  std::ifstream in(folder + "/stat");
  std::stringstream text;
  text << in.rdbuf();
  const std::string line = text.str();
  const size_t end = line.rfind(") ");
  if (end == std::string::npos) return {};
  return absl::StrSplit(line.substr(end + 2), ' ');
}

std::vector<std::string> StatFields(pid_t pid) {
  return StatFields(absl::StrCat("/proc/", pid));
}

char StateOf(const std::vector<std::string>& fields) {
  return fields.empty() || fields[0].empty() ? '\0' : fields[0][0];
}

uint64_t Number(const std::vector<std::string>& fields, size_t index) {
  uint64_t value = 0;
  if (index >= fields.size() || !absl::SimpleAtoi(fields[index], &value)) {
    return 0;
  }
  return value;
}

}  // namespace

char ProcessState(pid_t pid) { return StateOf(StatFields(pid)); }

bool AllThreadsStopped(pid_t pid) {
  std::error_code error;
  int stopped = 0;
  for (std::filesystem::directory_iterator
           it(absl::StrCat("/proc/", pid, "/task"), error),
       end;
       !error && it != end; it.increment(error)) {
    if (StateOf(StatFields(it->path().string())) != 'T') return false;
    ++stopped;
  }
  return !error && stopped > 0;
}

uint64_t CpuTicks(pid_t pid) {
  const auto fields = StatFields(pid);
  return Number(fields, 11) + Number(fields, 12);
}

uint64_t ResidentKib(pid_t pid) {
  return Number(StatFields(pid), 21) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

int OpenFiles(pid_t pid) {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator
           it(absl::StrCat("/proc/", pid, "/fd"), error),
       end;
       !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

absl::Status LimitOpenFiles(pid_t pid, uint64_t limit) {
  rlimit old{};
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &old) != 0) {
    return absl::ErrnoToStatus(errno, "prlimit");
  }
  const rlimit now{limit, old.rlim_max};
  if (prlimit(pid, RLIMIT_NOFILE, &now, nullptr) != 0) {
    return absl::ErrnoToStatus(errno, "prlimit");
  }
  return absl::OkStatus();
}

}  // namespace baton::testing
