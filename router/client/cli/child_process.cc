#include "router/client/cli/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::cli {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr std::streamoff kTailBytes = 2048;
constexpr size_t kMaxLineBytes = 8192;

absl::Status ErrnoStatus(const std::string& subject, std::string_view what) {
  const int error = errno;
  const std::string message =
      StrCat(subject, ": cannot ", what, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message)
                         : absl::InternalError(message);
}

void CopyLines(int fd, const std::string& name) {
  std::string pending;
  const auto print = [&](std::string_view line) {
    std::fprintf(stderr, "%-10s | %.*s\n", name.c_str(),
                 static_cast<int>(line.size()), line.data());
  };
  char buffer[4096];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
    pending.append(buffer, static_cast<size_t>(got));
    size_t start = 0;
    for (size_t end; (end = pending.find('\n', start)) != std::string::npos;
         start = end + 1) {
      print(std::string_view(pending).substr(start, end - start));
    }
    pending.erase(0, start);
    if (pending.size() > kMaxLineBytes) {
      print(pending);
      pending.clear();
    }
  }
  if (!pending.empty()) print(pending);
  close(fd);
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void Exec(const char* binary, char* const* arguments, int output,
                       int error_pipe, pid_t parent) {
  ShutdownSignals::RestoreSignals();
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(binary, arguments);
  const int error = errno;
  if (write(error_pipe, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    Options options) {
  std::unique_ptr<ChildProcess> child(new ChildProcess(std::move(options)));
  BATON_RETURN_IF_ERROR(child->Spawn());
  return child;
}

absl::Status ChildProcess::Spawn() {
  std::vector<char*> arguments{const_cast<char*>(options_.binary.c_str())};
  for (const std::string& argument : options_.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);

  int output[2] = {-1, -1};
  if (options_.log_file.empty()) {
    if (pipe2(output, O_CLOEXEC) != 0) {
      return ErrnoStatus(options_.binary, "start");
    }
  } else {
    output[1] = open(options_.log_file.c_str(),
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (output[1] < 0) return ErrnoStatus(options_.log_file, "open");
  }
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) {
    return ErrnoStatus(options_.binary, "start");
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    Exec(options_.binary.c_str(), arguments.data(), output[1], errors[1],
         parent);
  }
  close(output[1]);
  close(errors[1]);
  if (output[0] >= 0) {
    output_ = std::thread(CopyLines, output[0], options_.name);
  }
  int error = 0;
  const bool failed = read(errors[0], &error, sizeof(error)) == sizeof(error);
  close(errors[0]);
  if (pid_ < 0) return ErrnoStatus(options_.binary, "start");
  if (failed) {
    errno = error;
    return ErrnoStatus(options_.binary, "start");
  }
  return absl::OkStatus();
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && Running()) {
    Signal(SIGKILL);
    int status;
    waitpid(pid_, &status, 0);
  }
  if (output_.joinable()) output_.join();
}

bool ChildProcess::Running() {
  if (wait_status_.has_value()) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  wait_status_ = status;
  return false;
}

void ChildProcess::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

bool ChildProcess::WaitExit(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  while (Running()) {
    if (MonotonicNow() >= deadline) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return true;
}

bool ChildProcess::ExitedCleanly() const {
  return wait_status_.has_value() && WIFEXITED(*wait_status_) &&
         WEXITSTATUS(*wait_status_) == 0;
}

std::string ChildProcess::ExitText() const {
  if (!wait_status_.has_value()) return "is running";
  if (WIFSIGNALED(*wait_status_)) {
    const int signal = WTERMSIG(*wait_status_);
    return StrCat("was killed by signal ", signal, " (", strsignal(signal),
                  ")");
  }
  return StrCat("exited with status ", WEXITSTATUS(*wait_status_));
}

std::string ChildProcess::LogTail() const {
  std::ifstream log(options_.log_file, std::ios::binary | std::ios::ate);
  if (!log) return "";
  const std::streamoff size = log.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - kTailBytes);
  std::string tail(static_cast<size_t>(size - start), '\0');
  log.seekg(start);
  log.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<size_t>(log.gcount()));
  if (start > 0) tail.erase(0, tail.find('\n') + 1);
  return tail;
}

}  // namespace baton::cli
