#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/virtual_network.h"

namespace baton::testing {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kPollMs = 20;

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

void MakeNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Where a redirected connection was going.
sockaddr_in OriginalDestination(int fd) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &address, &length);
  return address;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpProxy>> TcpProxy::Start(Options options) {
  auto proxy = std::unique_ptr<TcpProxy>(new TcpProxy);
  proxy->options_ = std::move(options);
  std::promise<absl::Status> started;
  proxy->thread_ = std::thread([&started, proxy = proxy.get()] {
    const int network = proxy->options_.network;
    if (network >= 0 && setns(network, CLONE_NEWNET) != 0) {
      started.set_value(absl::ErrnoToStatus(errno, "setns"));
      return;
    }
    proxy->listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Address("127.0.0.1", 0);
    socklen_t length = sizeof(address);
    if (bind(proxy->listener_, reinterpret_cast<sockaddr*>(&address), length) !=
            0 ||
        listen(proxy->listener_, 64) != 0 ||
        getsockname(proxy->listener_, reinterpret_cast<sockaddr*>(&address),
                    &length) != 0) {
      started.set_value(absl::ErrnoToStatus(errno, "listen"));
      return;
    }
    MakeNonBlocking(proxy->listener_);
    proxy->port_ = ntohs(address.sin_port);
    started.set_value(absl::OkStatus());
    proxy->Run();
  });
  if (absl::Status s = started.get_future().get(); !s.ok()) return s;
  return proxy;
}

TcpProxy::~TcpProxy() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  if (listener_ >= 0) close(listener_);
}

std::string TcpProxy::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void TcpProxy::Plan(Act act, Direction direction, size_t min_read) {
  direction_ = direction;
  min_read_ = min_read;
  act_ = act;
}

void TcpProxy::Flip(Direction direction, size_t min_read) {
  Plan(Act::kFlip, direction, min_read);
}
void TcpProxy::Stall(Direction direction, size_t min_read) {
  Plan(Act::kStall, direction, min_read);
}
void TcpProxy::End(Direction direction, size_t min_read) {
  Plan(Act::kEnd, direction, min_read);
}
void TcpProxy::Reset(Direction direction, size_t min_read) {
  Plan(Act::kReset, direction, min_read);
}

void TcpProxy::Run() {
  while (!stop_) {
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}};
    std::vector<Connection*> order;
    for (Connection& c : connections_list_) {
      if (c.stalled) continue;
      const auto events = [&](const Pipe& in, const Pipe& out) {
        short wanted = 0;
        if (!in.ended && in.waiting.size() < kBufferBytes) wanted |= POLLIN;
        if (!out.waiting.empty() || (out.ended && !out.shut)) wanted |= POLLOUT;
        return wanted;
      };
      order.push_back(&c);
      polled.push_back(
          {c.client, events(c.pipes[kToServer], c.pipes[kToClient]), 0});
      polled.push_back(
          {c.server, events(c.pipes[kToClient], c.pipes[kToServer]), 0});
    }
    poll(polled.data(), polled.size(), kPollMs);
    if (reset_all_.exchange(false)) {
      for (Connection& c : connections_list_) {
        Close(&c, true);
        ++hits_;
      }
    }
    if (polled[0].revents != 0) Accept();
    for (size_t i = 0; i < order.size(); ++i) {
      Relay(order[i], kToServer, polled[2 * i + 1].revents);
      Relay(order[i], kToClient, polled[2 * i + 2].revents);
    }
    connections_list_.remove_if([](const Connection& c) { return c.over; });
  }
  for (Connection& c : connections_list_) Close(&c, false);
}

void TcpProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  sockaddr_in to{};
  if (options_.upstream.empty()) {
    to = OriginalDestination(client);
  } else {
    const std::vector<std::string> parts =
        absl::StrSplit(options_.upstream, ':');
    int port = 0;
    if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &port)) {
      to = Address(parts[0], port);
    }
  }
  Connection c;
  c.client = client;
  c.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int mark = VirtualNetwork::kProxyMark;
  if (options_.upstream.empty()) {
    setsockopt(c.server, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
  }
  if (connect(c.server, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    Close(&c, true);
    return;
  }
  MakeNonBlocking(c.client);
  MakeNonBlocking(c.server);
  ++connections_;
  connections_list_.push_back(std::move(c));
}

// `events` are of the socket that this direction reads from.
void TcpProxy::Relay(Connection* c, Direction direction, short events) {
  if (c->over || c->stalled) return;
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) Read(c, direction);
  for (const Direction way : {kToServer, kToClient}) {
    if (!c->over && !c->stalled) Write(c, way);
  }
  if (!c->over && c->pipes[0].shut && c->pipes[1].shut) Close(c, false);
}

void TcpProxy::Read(Connection* c, Direction direction) {
  Pipe& pipe = c->pipes[direction];
  if (pipe.ended || pipe.waiting.size() >= kBufferBytes) return;
  char buffer[kBufferBytes];
  const ssize_t got = recv(direction == kToServer ? c->client : c->server,
                           buffer, sizeof(buffer), 0);
  if (got == 0) {
    pipe.ended = true;
  } else if (got > 0) {
    pipe.waiting.append(buffer, static_cast<size_t>(got));
    bytes_[direction] += static_cast<uint64_t>(got);
    Hit(c, direction, static_cast<size_t>(got));
  } else if (errno != EAGAIN && errno != EINTR) {
    Close(c, true);
  }
}

// The last `arrived` of the bytes that wait are new.
void TcpProxy::Hit(Connection* c, Direction direction, size_t arrived) {
  const Act act = act_;
  Pipe& pipe = c->pipes[direction];
  if (act == Act::kNone || direction != direction_ || arrived < min_read_) {
    return;
  }
  const size_t at = pipe.waiting.size() - arrived + arrived / 2;
  act_ = Act::kNone;
  ++hits_;
  if (act == Act::kFlip) {
    pipe.waiting[at] = static_cast<char>(pipe.waiting[at] ^ 0x10);
    return;
  }
  pipe.waiting.resize(at);
  Write(c, direction);
  if (act == Act::kStall) {
    c->stalled = true;
  } else if (!c->over) {
    Close(c, act == Act::kReset);
  }
}

void TcpProxy::Write(Connection* c, Direction direction) {
  Pipe& pipe = c->pipes[direction];
  const int to = direction == kToServer ? c->server : c->client;
  while (!pipe.waiting.empty()) {
    const ssize_t sent =
        send(to, pipe.waiting.data(), pipe.waiting.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      pipe.waiting.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      return;
    } else {
      return Close(c, true);
    }
  }
  if (pipe.ended && !pipe.shut) {
    shutdown(to, SHUT_WR);
    pipe.shut = true;
  }
}

void TcpProxy::Close(Connection* c, bool reset) {
  if (c->over) return;
  c->over = true;
  for (const int fd : {c->client, c->server}) {
    const linger now{1, 0};
    if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
  }
}

}  // namespace baton::testing
