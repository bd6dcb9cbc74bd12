#ifndef BATON_TESTS_SUPPORT_VIRTUAL_NETWORK_H_
#define BATON_TESTS_SUPPORT_VIRTUAL_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::testing {

// Hosts that are network namespaces, joined by a bridge in the namespace of
// the test, which reaches all of them. Nothing of it is visible to the rest of
// the machine, and it goes with the test. Needs `ip`, `nft`, `tc` and the right
// to make namespaces: root, or user namespaces for everybody.
class VirtualNetwork {
 public:
  // Moves this process into a network namespace of its own: once, before it
  // has threads. PERMISSION_DENIED says what is missing.
  static absl::Status Enter();
  static absl::StatusOr<std::unique_ptr<VirtualNetwork>> Create(int hosts);
  ~VirtualNetwork();

  // For Place::network and Place::host.
  int network(int host) const { return hosts_[host].network; }
  const std::string& address(int host) const { return hosts_[host].address; }

  enum class Cut { kDrop, kReset };
  // No packet between `host` and `peer` passes any more: silently, or answered
  // with a reset. `peer` is an address that need not exist.
  absl::Status CutLink(int host, const std::string& peer, Cut how);
  // `percent` of the packets to `peer` are lost.
  absl::Status LosePackets(int host, const std::string& peer, int percent);
  // TCP connections that `host` opens to `peer` from now on end at `port` of
  // its own loopback device, unless their packets carry kProxyMark.
  absl::Status Redirect(int host, const std::string& peer, uint16_t port);
  static constexpr int kProxyMark = 0x77;
  // Packets that the rules of this host have hit so far.
  absl::StatusOr<uint64_t> PacketsHit(int host) const;
  // Ends the three above; the count starts again.
  absl::Status Heal(int host);

  // What `host` sends passes a token bucket of this rate; 0 takes it away.
  absl::Status LimitRate(int host, int mbit_per_s);

 private:
  struct Host {
    int network = -1;
    std::string address;
  };
  VirtualNetwork() = default;
  absl::Status AddHost(int index);
  absl::Status AddRules(int host, const std::string& rules);

  std::vector<Host> hosts_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_VIRTUAL_NETWORK_H_
