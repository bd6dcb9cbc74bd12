#include "tests/conformance/transport/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "tests/conformance/transport/core_node.h"
#include "tests/conformance/transport/transport_suite.h"

namespace baton::transfer {
namespace {

std::string Answer(CoreNode* node, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "land") {
    uint32_t blocks = 0;
    words >> blocks;
    return absl::BytesToHexString(node->Land(blocks).SerializeAsString());
  }
  if (verb == "push") {
    std::string hex;
    uint32_t count = 0;
    words >> hex >> count;
    Ticket ticket;
    BATON_CHECK(ticket.ParseFromString(absl::HexStringToBytes(hex)));
    node->Push(ticket, count);
    return "ok";
  }
  if (verb == "events") return node->TakeEvents();
  return "what?";
}

}  // namespace

int PeerProcess::Main() {
  CoreNode node;
  std::string input;
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  while (true) {
    char buffer[65536];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n == 0) return 0;
    if (n > 0) input.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = input.find('\n')) != std::string::npos;) {
      const std::string answer = Answer(&node, input.substr(0, end)) + "\n";
      input.erase(0, end + 1);
      if (write(STDOUT_FILENO, answer.data(), answer.size()) < 0) return 1;
    }
    if (!node.Poll()) node.Wait(std::chrono::milliseconds(1));
  }
}

PeerProcess::PeerProcess() {
  PrepareTransportUnderTest();
  int there[2];
  int back[2];
  BATON_CHECK(pipe2(there, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, there[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, back[1], STDOUT_FILENO);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.push_back(*variable);
  }
  std::string mark = std::string(kVariable) + "=1";
  variables.push_back(mark.data());
  // UCX writes its log to standard output.
  std::string log = "UCX_LOG_FILE=stderr";
  variables.push_back(log.data());
  variables.push_back(nullptr);
  char name[] = "peer";
  char* arguments[] = {name, nullptr};
  BATON_CHECK(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments,
                          variables.data()) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(there[0]);
  close(back[1]);
  to_ = there[1];
  from_ = back[0];
}

PeerProcess::~PeerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(to_);
  close(from_);
}

std::string PeerProcess::Ask(const std::string& line) {
  const std::string question = line + "\n";
  BATON_CHECK(write(to_, question.data(), question.size()) ==
              static_cast<ssize_t>(question.size()));
  std::string answer;
  for (char c; read(from_, &c, 1) == 1 && c != '\n';) answer += c;
  return answer;
}

void PeerProcess::Signal(int signal) const { kill(pid_, signal); }

}  // namespace baton::transfer
