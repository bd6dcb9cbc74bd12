#include "tests/bench/transfer_bench_peer.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/base/check.h"

namespace baton::transfer {
namespace {

constexpr unsigned kLongestRun = 600;  // seconds

void WriteAll(int fd, const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    BATON_CHECK(n > 0);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void ReadAll(int fd, void* data, size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = read(fd, bytes, size);
    BATON_CHECK(n > 0);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

pid_t Fork(int fd, int other_fd, int core,
           const std::function<void(const BenchPeer&)>& run) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  BATON_CHECK(pid >= 0);
  if (pid > 0) return pid;
  close(other_fd);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
  alarm(kLongestRun);
  run(BenchPeer(fd));
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace

void BenchPeer::Send(const std::string& message) const {
  const uint64_t size = message.size();
  WriteAll(fd_, &size, sizeof(size));
  WriteAll(fd_, message.data(), message.size());
}

std::string BenchPeer::Receive() const {
  uint64_t size = 0;
  ReadAll(fd_, &size, sizeof(size));
  std::string message(size, '\0');
  ReadAll(fd_, message.data(), size);
  return message;
}

bool RunPair(const std::function<void(const BenchPeer&)>& receiver,
             const std::function<void(const BenchPeer&)>& holder) {
  int fds[2];
  BATON_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const pid_t pids[] = {Fork(fds[0], fds[1], 0, receiver),
                        Fork(fds[1], fds[0], 1, holder)};
  close(fds[0]);
  close(fds[1]);
  bool good = true;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return good;
}

int RoundsFor(size_t bytes) {
  constexpr size_t kTotal = size_t{1} << 29;
  return static_cast<int>(std::clamp<size_t>(kTotal / bytes, 12, 20'000));
}

}  // namespace baton::transfer
