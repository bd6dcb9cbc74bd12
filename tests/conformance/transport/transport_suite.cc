#include "tests/conformance/transport/transport_suite.h"

#include <cstdlib>
#include <random>

#include "kv_transfer/fault/fault_transport.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/loopback/loopback_transport.h"
#include "kv_transfer/ucx/ucx_transport.h"
#include "tests/support/certificates.h"

namespace baton::transfer {
namespace {

constexpr char kCertificates[] = "BATON_TEST_CERTIFICATES";

std::shared_ptr<const TlsCredentials> TlsUnderTest() {
  if (TransportUnderTest() != "grpc_tls") return nullptr;
  PrepareTransportUnderTest();
  const std::string dir = std::getenv(kCertificates);
  auto tls = TlsCredentials::Load({.cert = dir + "/prefill.crt",
                                   .key = dir + "/prefill.key",
                                   .ca = dir + "/ca.crt"},
                                  PeerRole::kPrefill);
  EXPECT_TRUE(tls.ok()) << tls.status();
  return tls.ok() ? *std::move(tls) : nullptr;
}

}  // namespace

std::string TransportUnderTest() {
  const char* kind = std::getenv("BATON_TRANSPORT");
  return kind == nullptr ? "loopback" : kind;
}

std::string NameUnderTest() {
  const std::string kind = TransportUnderTest();
  return kind == "grpc_tls" ? "grpc" : kind;
}

// All processes of a test use one folder of certificates; the first makes it.
void PrepareTransportUnderTest() {
  if (TransportUnderTest() != "grpc_tls" || std::getenv(kCertificates)) return;
  static const testing::Certificates made;
  setenv(kCertificates, made.dir().c_str(), 1);
}

namespace {

std::unique_ptr<Transport> MakePlainTransport() {
  if (TransportUnderTest() == "loopback") {
    static LoopbackHub hub;
    return hub.MakeTransport();
  }
  auto transport = TransportUnderTest().starts_with("grpc")
                       ? MakeGrpcTransport({.tls = TlsUnderTest()})
                       : MakeUcxTransport({});
  if (!transport.ok()) {
    ADD_FAILURE() << transport.status();
    std::abort();
  }
  return *std::move(transport);
}

}  // namespace

std::unique_ptr<Transport> MakeTransportUnderTest() {
  if (std::getenv("BATON_TRANSPORT_DECORATED") == nullptr) {
    return MakePlainTransport();
  }
  return std::make_unique<FaultTransport>(MakePlainTransport(),
                                          std::vector<FaultSpec>());
}

LinkId Node::Connect(const Node& peer) {
  const auto link = transport->Connect(peer.transport->address());
  EXPECT_TRUE(link.ok()) << link.status();
  return link.value_or(LinkId());
}

SendId Node::Send(LinkId link, std::string_view header,
                  absl::Span<const std::byte> payload) {
  const SendId id(next_send++);
  const std::string& kept = headers_.emplace_back(header);
  const absl::Status status = transport->Send(
      link, id, {reinterpret_cast<const std::byte*>(kept.data()), kept.size()},
      payload);
  EXPECT_TRUE(status.ok()) << status;
  return id;
}

bool PollUntil(std::initializer_list<Node*> nodes,
               const std::function<bool()>& done, Duration limit) {
  const MonotonicTime end = MonotonicNow() + limit;
  while (!done()) {
    if (MonotonicNow() >= end) return false;
    for (Node* node : nodes) node->Poll();
  }
  return true;
}

void PollFor(std::initializer_list<Node*> nodes, Duration time) {
  PollUntil(nodes, [] { return false; }, time);
}

std::vector<std::byte> Pattern(size_t size, uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::minstd_rand random(seed + 1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 8);
  return bytes;
}

}  // namespace baton::transfer
