#include "tests/load/core_pinning.h"

#include <sched.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace baton::testing {

namespace {

std::vector<int> ReadUsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

std::vector<int> UsableCores() {
  static const std::vector<int> cores = ReadUsableCores();
  return cores;
}

absl::Status PinToCores(pid_t pid, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", pid, "/task"), error)) {
    int thread = 0;
    if (!absl::SimpleAtoi(task.path().filename().string(), &thread)) continue;
    if (sched_setaffinity(thread, sizeof(set), &set) != 0 && errno != ESRCH) {
      return absl::ErrnoToStatus(errno, absl::StrCat("process ", pid));
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat("process ", pid));
  return absl::OkStatus();
}

}  // namespace baton::testing
