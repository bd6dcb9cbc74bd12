#include "tests/bench/transfer_bench_probes.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/monotonic_time.h"

namespace baton::transfer {
namespace {

constexpr unsigned kMessage = 1;
constexpr int kWindow = 4;

double Rate(size_t bytes, int rounds, MonotonicTime start) {
  return static_cast<double>(bytes) * rounds / Seconds(MonotonicNow() - start);
}

int ListenOnLoopback(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  BATON_CHECK(
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  BATON_CHECK(listen(fd, 1) == 0);
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  *port = ntohs(address.sin_port);
  return fd;
}

int ConnectToLoopback(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  BATON_CHECK(
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

// A bare worker with one endpoint.
class BareUcx {
 public:
  explicit BareUcx(const BenchPeer& peer) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    ucp_config_t* config = nullptr;
    BATON_CHECK(ucp_config_read(nullptr, nullptr, &config) == UCS_OK);
    if (std::getenv("UCX_NET_DEVICES") == nullptr) {
      ucp_config_modify(config, "NET_DEVICES", "lo");
    }
    BATON_CHECK(ucp_init(&params, config, &context_) == UCS_OK);
    ucp_config_release(config);
    ucp_worker_params_t worker_params{};
    BATON_CHECK(ucp_worker_create(context_, &worker_params, &worker_) ==
                UCS_OK);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                         UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kMessage;
    handler.cb = OnMessage;
    handler.arg = this;
    BATON_CHECK(ucp_worker_set_am_recv_handler(worker_, &handler) == UCS_OK);
    ucp_address_t* address = nullptr;
    size_t length = 0;
    BATON_CHECK(ucp_worker_get_address(worker_, &address, &length) == UCS_OK);
    peer.Send(std::string(reinterpret_cast<char*>(address), length));
    ucp_worker_release_address(worker_, address);
    const std::string other = peer.Receive();
    ucp_ep_params_t ep_params{};
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = reinterpret_cast<const ucp_address_t*>(other.data());
    BATON_CHECK(ucp_ep_create(worker_, &ep_params, &endpoint_) == UCS_OK);
  }

  void Send(const std::vector<char>& buffer, int rounds) {
    int started = 0;
    sent_ = 0;
    while (sent_ < rounds) {
      if (started < rounds && started - sent_ < kWindow) {
        ++started;
        ucp_request_param_t param{};
        param.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = OnSent;
        param.user_data = this;
        void* request = ucp_am_send_nbx(endpoint_, kMessage, nullptr, 0,
                                        buffer.data(), buffer.size(), &param);
        BATON_CHECK(!UCS_PTR_IS_ERR(request));
        if (request == nullptr) ++sent_;
      }
      ucp_worker_progress(worker_);
    }
  }

  void Receive(std::vector<char>* buffer, int rounds) {
    buffer_ = buffer;
    while (received_ < rounds) ucp_worker_progress(worker_);
    received_ = 0;
  }

  void ProgressFor(Duration time) {
    const MonotonicTime end = MonotonicNow() + time;
    while (MonotonicNow() < end) ucp_worker_progress(worker_);
  }

 private:
  static void OnSent(void* request, ucs_status_t, void* self) {
    ucp_request_free(request);
    ++static_cast<BareUcx*>(self)->sent_;
  }
  static ucs_status_t OnMessage(void* argument, const void*, size_t, void* data,
                                size_t length,
                                const ucp_am_recv_param_t* param) {
    auto* self = static_cast<BareUcx*>(argument);
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      std::memcpy(self->buffer_->data(), data, length);
      ++self->received_;
      return UCS_OK;
    }
    ucp_request_param_t receive{};
    receive.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    receive.cb.recv_am = OnReceived;
    receive.user_data = self;
    void* request = ucp_am_recv_data_nbx(
        self->worker_, data, self->buffer_->data(), length, &receive);
    BATON_CHECK(!UCS_PTR_IS_ERR(request));
    if (request == nullptr) ++self->received_;
    return UCS_INPROGRESS;
  }
  static void OnReceived(void* request, ucs_status_t, size_t, void* self) {
    ucp_request_free(request);
    ++static_cast<BareUcx*>(self)->received_;
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<char>* buffer_ = nullptr;
  int sent_ = 0;
  int received_ = 0;
};

}  // namespace

Rates MemcpyProbe(const std::vector<size_t>& sizes) {
  Rates rates;
  for (const size_t size : sizes) {
    const std::vector<char> from(size, 1);
    std::vector<char> to(size, 2);
    const int rounds = RoundsFor(size);
    const MonotonicTime start = MonotonicNow();
    for (int i = 0; i < rounds; ++i) {
      std::memcpy(to.data(), from.data(), size);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    rates[size] = Rate(size, rounds, start);
  }
  return rates;
}

Rates TcpProbe(const BenchPeer& peer, bool receiver,
               const std::vector<size_t>& sizes) {
  int fd;
  if (receiver) {
    uint16_t port = 0;
    const int listening = ListenOnLoopback(&port);
    peer.Send(std::to_string(port));
    fd = accept(listening, nullptr, nullptr);
    close(listening);
  } else {
    fd = ConnectToLoopback(static_cast<uint16_t>(std::stoi(peer.Receive())));
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Rates rates;
  for (const size_t size : sizes) {
    std::vector<char> buffer(size, 1);
    const int rounds = RoundsFor(size);
    peer.Meet();
    const MonotonicTime start = MonotonicNow();
    for (int i = 0; i < rounds; ++i) {
      for (size_t done = 0; done < size;) {
        const ssize_t n = receiver
                              ? recv(fd, buffer.data() + done, size - done, 0)
                              : send(fd, buffer.data() + done, size - done, 0);
        BATON_CHECK(n > 0);
        done += static_cast<size_t>(n);
      }
    }
    if (receiver) rates[size] = Rate(size, rounds, start);
  }
  close(fd);
  return rates;
}

Rates UcxProbe(const BenchPeer& peer, bool receiver,
               const std::vector<size_t>& sizes) {
  BareUcx ucx(peer);
  Rates rates;
  for (const size_t size : sizes) {
    std::vector<char> buffer(size, 1);
    const int rounds = RoundsFor(size);
    for (const int count : {3, rounds}) {  // the first warms up
      peer.Meet();
      const MonotonicTime start = MonotonicNow();
      if (receiver) {
        ucx.Receive(&buffer, count);
        rates[size] = Rate(size, count, start);
      } else {
        ucx.Send(buffer, count);
      }
      ucx.ProgressFor(std::chrono::milliseconds(5));
    }
  }
  ucx.ProgressFor(std::chrono::milliseconds(50));
  return rates;
}

}  // namespace baton::transfer
