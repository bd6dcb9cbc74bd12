#ifndef BATON_TESTS_FAULT_NETWORK_FAULT_H_
#define BATON_TESTS_FAULT_NETWORK_FAULT_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tests/fault/fault.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/virtual_network.h"

namespace baton::testing {

// Rules at a host of a virtual network. It was hit when they have seen a
// packet.
class LinkFault : public Fault {
 public:
  // `lay` puts the rules in place.
  LinkFault(VirtualNetwork* network, int host,
            std::function<absl::Status()> lay);
  ~LinkFault() override;
  void Inject() override;
  absl::Status TookEffect() override;
  absl::Status Heal() override;

 private:
  VirtualNetwork* const network_;
  const int host_;
  const std::function<absl::Status()> lay_;
  absl::Status laid_;
  bool healed_ = false;
};

// What a proxy does to one connection that passes through it. It was hit when
// the proxy has counted that.
class ProxyFault : public Fault {
 public:
  // `act` tells the proxy what to do.
  ProxyFault(TcpProxy* proxy, std::function<void()> act);
  void Inject() override;
  absl::Status TookEffect() override;
  absl::Status Heal() override;

 private:
  TcpProxy* const proxy_;
  const std::function<void()> act_;
  uint64_t hits_before_ = 0;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_FAULT_NETWORK_FAULT_H_
