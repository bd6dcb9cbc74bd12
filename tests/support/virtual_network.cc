#include "tests/support/virtual_network.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::testing {
namespace {

constexpr char kDevice[] = "eth0";
constexpr char kTable[] = "inet baton_fault";

// Runs a program in `network` (-1: here) and returns what it wrote.
absl::StatusOr<std::string> RunProgram(int network,
                                       const std::vector<std::string>& args) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  std::vector<char*> argv;
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    if (network >= 0 && setns(network, CLONE_NEWNET) != 0) _exit(126);
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(out[0], buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  close(out[0]);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) {
    return absl::ErrnoToStatus(errno, args[0]);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat(
        args[0], " ", args[1], ": wait status ", status, ": ", text));
  }
  return text;
}

// The words of `line`, none of which holds a space.
absl::Status RunLine(int network, const std::string& line) {
  return RunProgram(network, absl::StrSplit(line, ' ')).status();
}

absl::Status WriteFile(const char* path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.flush();
  if (out.good()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, path);
}

absl::Status EnterAsUser() {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return absl::PermissionDeniedError(
        "network namespaces are not permitted here: run as root, in a "
        "container with CAP_SYS_ADMIN, or allow user namespaces");
  }
  for (const auto& [path, text] :
       {std::pair<const char*, std::string>("/proc/self/setgroups", "deny"),
        {"/proc/self/uid_map", absl::StrCat("0 ", uid, " 1")},
        {"/proc/self/gid_map", absl::StrCat("0 ", gid, " 1")}}) {
    if (absl::Status s = WriteFile(path, text); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VirtualNetwork::Enter() {
  if (unshare(CLONE_NEWNET) != 0) {
    if (absl::Status s = EnterAsUser(); !s.ok()) return s;
  }
  for (const char* line :
       {"ip link set lo up", "ip link add br0 type bridge",
        "ip addr add 10.77.0.254/24 dev br0", "ip link set br0 up"}) {
    if (absl::Status s = RunLine(-1, line); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<VirtualNetwork>> VirtualNetwork::Create(
    int hosts) {
  auto network = std::unique_ptr<VirtualNetwork>(new VirtualNetwork);
  for (int i = 0; i < hosts; ++i) {
    if (absl::Status s = network->AddHost(i); !s.ok()) return s;
  }
  return network;
}

absl::Status VirtualNetwork::AddHost(int index) {
  // A namespace lives as long as something refers to it: here, a file.
  const int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || unshare(CLONE_NEWNET) != 0) {
    return absl::ErrnoToStatus(errno, "unshare");
  }
  Host host;
  host.network = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (host.network < 0 || setns(home, CLONE_NEWNET) != 0) {
    return absl::ErrnoToStatus(errno, "setns");
  }
  close(home);
  host.address = absl::StrCat("10.77.0.", index + 1);
  hosts_.push_back(host);
  const std::string outer = absl::StrCat("host", index);
  const std::string inner =
      absl::StrCat("/proc/", getpid(), "/fd/", host.network);
  for (const std::string& line :
       {absl::StrCat("ip link add ", outer, " type veth peer name ", kDevice,
                     " netns ", inner),
        absl::StrCat("ip link set ", outer, " master br0 up")}) {
    if (absl::Status s = RunLine(-1, line); !s.ok()) return s;
  }
  for (const std::string& line :
       {std::string("ip link set lo up"),
        absl::StrCat("ip addr add ", host.address, "/24 dev ", kDevice),
        absl::StrCat("ip link set ", kDevice, " up")}) {
    if (absl::Status s = RunLine(host.network, line); !s.ok()) return s;
  }
  return absl::OkStatus();
}

VirtualNetwork::~VirtualNetwork() {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    RunLine(-1, absl::StrCat("ip link del host", i)).IgnoreError();
    close(hosts_[i].network);
  }
}

absl::Status VirtualNetwork::AddRules(int host, const std::string& rules) {
  return RunProgram(
             hosts_[host].network,
             {"nft", absl::StrCat("table ", kTable, " {\n counter hit { }\n",
                                  rules, "}\n")})
      .status();
}

absl::Status VirtualNetwork::CutLink(int host, const std::string& peer,
                                     Cut how) {
  const char* verdict =
      how == Cut::kDrop ? "counter name hit drop"
                        : "meta l4proto tcp counter name hit reject with tcp "
                          "reset";
  return AddRules(
      host,
      absl::StrCat(" chain out {\n  type filter hook output priority 0;\n",
                   "  ip daddr ", peer, " ", verdict, "\n }\n",
                   " chain in {\n  type filter hook input priority 0;\n",
                   "  ip saddr ", peer, " ", verdict, "\n }\n"));
}

absl::Status VirtualNetwork::LosePackets(int host, const std::string& peer,
                                         int percent) {
  return AddRules(
      host,
      absl::StrCat(" chain out {\n  type filter hook output priority 0;\n",
                   "  ip daddr ", peer, " numgen random mod 100 < ", percent,
                   " counter name hit drop\n }\n"));
}

absl::Status VirtualNetwork::Redirect(int host, const std::string& peer,
                                      uint16_t port) {
  return AddRules(
      host,
      absl::StrCat(" chain out {\n  type nat hook output priority -100;\n",
                   "  ip daddr ", peer,
                   " meta l4proto tcp meta mark != ", kProxyMark,
                   " counter name hit dnat ip to 127.0.0.1:", port, "\n }\n"));
}

absl::StatusOr<uint64_t> VirtualNetwork::PacketsHit(int host) const {
  const auto text =
      RunProgram(hosts_[host].network,
                 {"nft", "list", "counter", "inet", "baton_fault", "hit"});
  if (!text.ok()) return text.status();
  const std::vector<std::string> words =
      absl::StrSplit(*text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty());
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    uint64_t packets = 0;
    if (words[i] == "packets" && absl::SimpleAtoi(words[i + 1], &packets)) {
      return packets;
    }
  }
  return absl::InternalError(absl::StrCat("no count in: ", *text));
}

absl::Status VirtualNetwork::Heal(int host) {
  return RunLine(hosts_[host].network,
                 absl::StrCat("nft delete table ", kTable));
}

absl::Status VirtualNetwork::LimitRate(int host, int mbit_per_s) {
  if (mbit_per_s == 0) {
    return RunLine(hosts_[host].network,
                   absl::StrCat("tc qdisc del dev ", kDevice, " root"));
  }
  return RunLine(
      hosts_[host].network,
      absl::StrCat("tc qdisc replace dev ", kDevice, " root tbf rate ",
                   mbit_per_s, "mbit burst 32kbit latency 400ms"));
}

}  // namespace baton::testing
