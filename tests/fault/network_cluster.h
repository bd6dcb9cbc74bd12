#ifndef BATON_TESTS_FAULT_NETWORK_CLUSTER_H_
#define BATON_TESTS_FAULT_NETWORK_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/network_fault.h"
#include "tests/support/virtual_network.h"

namespace baton::testing {

// One router, two workers of each kind, each on a host of its own of a
// virtual network. A binary that uses it enters that network before its tests;
// where that is not permitted, the binary fails and says so.
class NetworkCluster {
 public:
  static constexpr int kPoolBlocks = 400;
  static constexpr int kRouterHost = 0;
  static int PrefillHost(int i) { return 1 + i; }
  static int DecodeHost(int i) { return 3 + i; }
  // An address that no host has: where a mis-aimed fault goes.
  static constexpr char kNobody[] = "10.77.0.200";
  static constexpr char kAnybody[] = "10.77.0.0/24";

  // `prepare` changes the network before the processes start; `transport` is
  // how KV travels.
  static absl::StatusOr<std::unique_ptr<NetworkCluster>> Start(
      const std::function<absl::Status(VirtualNetwork&)>& prepare = nullptr,
      const std::string& transport = "ucx");

  VirtualNetwork& network() { return *network_; }
  FaultedCluster& cluster() { return *cluster_; }
  Process& prefill(int i) { return cluster_->processes().prefill(i); }
  Process& decode(int i) { return cluster_->processes().decode(i); }
  const std::string& prefill_address(int i) {
    return network_->address(PrefillHost(i));
  }
  const std::string& decode_address(int i) {
    return network_->address(DecodeHost(i));
  }

  // The worker that has blocks in this state now, or -1.
  int Prefilling(const std::string& state);
  int Decoding(const std::string& state);

  std::unique_ptr<Fault> CutLink(int host, const std::string& peer,
                                 VirtualNetwork::Cut how);

 private:
  std::unique_ptr<VirtualNetwork> network_;
  std::unique_ptr<FaultedCluster> cluster_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_FAULT_NETWORK_CLUSTER_H_
