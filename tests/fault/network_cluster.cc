#include "tests/fault/network_cluster.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

class NetworkEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_EQ(VirtualNetwork::Enter(), absl::OkStatus());
  }
};

[[maybe_unused]] const auto* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new NetworkEnvironment);

Place At(const VirtualNetwork& network, int host,
         std::vector<std::string> flags) {
  Place place;
  place.host = network.address(host);
  place.network = network.network(host);
  place.flags = std::move(flags);
  place.flags.push_back("--insecure");
  return place;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetworkCluster>> NetworkCluster::Start(
    const std::function<absl::Status(VirtualNetwork&)>& prepare,
    const std::string& transport) {
  auto model = SmolLm2Path();
  if (!model.ok()) return model.status();
  auto network = VirtualNetwork::Create(5);
  if (!network.ok()) return network.status();
  if (prepare) {
    if (absl::Status s = prepare(**network); !s.ok()) return s;
  }
  ClusterOptions options;
  options.model = *model;
  options.prefill = options.decode = 2;
  options.worker_flags = {
      "--threads=1", absl::StrCat("--kv-blocks=", kPoolBlocks),
      absl::StrCat("--max-context=", kPoolBlocks * 16), "--step-tokens=32",
      absl::StrCat("--transport=", transport)};
  options.decode_flags = {"--disaggregation=always"};
  options.router_flags = {"--stall-timeout=2s", "--silence-timeout=3s"};
  options.places["router-0"] = At(**network, kRouterHost, {});
  for (int i = 0; i < 2; ++i) {
    options.places[absl::StrCat("prefill-", i)] =
        At(**network, PrefillHost(i), {"--trusted-network"});
    options.places[absl::StrCat("decode-", i)] =
        At(**network, DecodeHost(i), {"--trusted-network"});
  }
  auto cluster = FaultedCluster::Start(options);
  if (!cluster.ok()) return cluster.status();
  auto result = std::make_unique<NetworkCluster>();
  result->network_ = *std::move(network);
  result->cluster_ = *std::move(cluster);
  return result;
}

int NetworkCluster::Prefilling(const std::string& state) {
  for (int i = 0; i < 2; ++i) {
    if (cluster_->Blocks(prefill(i), state) > 0) return i;
  }
  return -1;
}

int NetworkCluster::Decoding(const std::string& state) {
  for (int i = 0; i < 2; ++i) {
    if (cluster_->Blocks(decode(i), state) > 0) return i;
  }
  return -1;
}

std::unique_ptr<Fault> NetworkCluster::CutLink(int host,
                                               const std::string& peer,
                                               VirtualNetwork::Cut how) {
  return std::make_unique<LinkFault>(network_.get(), host, [=, this] {
    return network_->CutLink(host, peer, how);
  });
}

}  // namespace baton::testing
