#include "tests/fault/network_fault.h"

#include "absl/strings/str_cat.h"

namespace baton::testing {

LinkFault::LinkFault(VirtualNetwork* network, int host,
                     std::function<absl::Status()> lay)
    : network_(network), host_(host), lay_(std::move(lay)) {}

LinkFault::~LinkFault() { Heal().IgnoreError(); }

void LinkFault::Inject() { laid_ = lay_(); }

absl::Status LinkFault::TookEffect() {
  if (!laid_.ok()) return laid_;
  const auto packets = network_->PacketsHit(host_);
  if (!packets.ok()) return packets.status();
  if (*packets > 0) return absl::OkStatus();
  return absl::FailedPreconditionError("the rules saw no packet");
}

absl::Status LinkFault::Heal() {
  if (healed_ || !laid_.ok()) return laid_;
  healed_ = true;
  return network_->Heal(host_);
}

ProxyFault::ProxyFault(TcpProxy* proxy, std::function<void()> act)
    : proxy_(proxy), act_(std::move(act)) {}

void ProxyFault::Inject() {
  hits_before_ = proxy_->hits();
  act_();
}

absl::Status ProxyFault::TookEffect() {
  if (proxy_->hits() > hits_before_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the proxy changed nothing in ", proxy_->connections(),
                   " connections, ", proxy_->bytes(TcpProxy::kToServer), "+",
                   proxy_->bytes(TcpProxy::kToClient), " bytes"));
}

absl::Status ProxyFault::Heal() {
  proxy_->Disarm();
  return absl::OkStatus();
}

}  // namespace baton::testing
