#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

extern char** environ;

namespace baton::testing {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr auto kPollInterval = std::chrono::milliseconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(Launch launch) {
  auto process = std::unique_ptr<Process>(new Process);
  process->name_ = launch.name;
  process->ready_file_ =
      absl::StrCat(launch.work_dir, "/", launch.name, ".ready");
  process->log_file_ =
      !launch.log_file.empty()
          ? launch.log_file
          : absl::StrCat(launch.work_dir, "/", launch.name, ".log");
  unlink(process->ready_file_.c_str());
  const char* bin = std::getenv("BATON_BIN_DIR");
  const std::string path =
      absl::StrCat(bin != nullptr ? bin : BATON_BIN_DIR, "/", launch.binary);
  std::vector<std::string> args = {path};
  for (std::string& flag : launch.flags) args.push_back(std::move(flag));
  args.push_back(absl::StrCat("--ready-file=", process->ready_file_));
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string key(text.substr(0, text.find('=')));
    if (!launch.environment.contains(key)) env.emplace_back(text);
  }
  for (const auto& [key, value] : launch.environment) {
    env.push_back(absl::StrCat(key, "=", value));
  }
  std::vector<char*> argv, envp;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  for (std::string& entry : env) envp.push_back(entry.data());
  envp.push_back(nullptr);

  const pid_t parent = getpid();
  process->pid_ = fork();
  if (process->pid_ < 0) return absl::InternalError("fork failed");
  if (process->pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    if (launch.network >= 0 && setns(launch.network, CLONE_NEWNET) != 0) {
      _exit(127);
    }
    const int log = launch.log_fd >= 0
                        ? launch.log_fd
                        : open(process->log_file_.c_str(),
                               O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  return process;
}

Process::~Process() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
}

bool Process::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

absl::Status Process::WaitReady(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  while (MonotonicNow() < deadline) {
    const std::string text = ReadFile(ready_file_);
    auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_object() && json.contains("address")) {
      address_ = json["address"];
      admin_ = json["admin"];
      decode_address_ = json.value("decode", "");
      return absl::OkStatus();
    }
    if (!alive()) {
      return absl::UnavailableError(
          absl::StrCat(name_, " ended before it was ready:\n", LogTail()));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return absl::DeadlineExceededError(
      absl::StrCat(name_, " is not ready:\n", LogTail()));
}

void Process::Signal(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

absl::StatusOr<int> Process::WaitExit(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return status;
    }
    if (MonotonicNow() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(name_, " does not end:\n", LogTail()));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return absl::FailedPreconditionError(absl::StrCat(name_, " was reaped"));
}

absl::StatusOr<std::string> Process::AdminGet(const std::string& path,
                                              Duration limit) const {
  const std::vector<std::string> parts = absl::StrSplit(admin_, ':');
  int port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) {
    return absl::FailedPreconditionError(absl::StrCat("admin: ", admin_));
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, parts[0].c_str(), &address.sin_addr);
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  const timeval timeout{us / 1'000'000, us % 1'000'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  // A test that was stopped and goes on is interrupted.
  const auto again = [](auto call) {
    ssize_t result = 0;
    do {
      result = call();
    } while (result < 0 && errno == EINTR);
    return result;
  };
  const ssize_t connected = again([&] {
    const int result =
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    return result != 0 && errno == EISCONN ? 0 : result;
  });
  if (connected != 0) {
    close(fd);
    return absl::UnavailableError(absl::StrCat(name_, ": no admin port"));
  }
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", admin_,
                   "\r\nConnection: close\r\n\r\n");
  if (again([&] {
        return send(fd, request.data(), request.size(), MSG_NOSIGNAL);
      }) < 0) {
    close(fd);
    return absl::UnavailableError(absl::StrCat(name_, ": admin send"));
  }
  std::string reply;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = again([&] { return recv(fd, buffer, sizeof(buffer), 0); })) >
         0) {
    reply.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  const size_t body = reply.find("\r\n\r\n");
  if (body == std::string::npos) {
    return absl::UnavailableError(absl::StrCat(name_, ": short HTTP reply"));
  }
  return reply.substr(body + 4);
}

absl::StatusOr<double> Process::Metric(const std::string& name,
                                       const std::string& label_text) const {
  absl::StatusOr<std::string> text = AdminGet("/metrics");
  if (!text.ok()) return text.status();
  std::optional<double> sum;
  for (const auto part : absl::StrSplit(*text, '\n')) {
    const std::string row(part);
    if (row.rfind(name, 0) != 0) continue;
    const char next = row.size() > name.size() ? row[name.size()] : '\0';
    if (next != '{' && next != ' ') continue;
    if (row.find(label_text) == std::string::npos) continue;
    double value = 0;
    if (absl::SimpleAtod(row.substr(row.rfind(' ') + 1), &value)) {
      sum = sum.value_or(0) + value;
    }
  }
  if (sum.has_value()) return *sum;
  return absl::NotFoundError(absl::StrCat(name_, ": ", name, " ", label_text));
}

std::string Process::LogTail(size_t bytes) const {
  const std::string text = ReadFile(log_file_);
  return text.size() > bytes ? text.substr(text.size() - bytes) : text;
}

}  // namespace baton::testing
