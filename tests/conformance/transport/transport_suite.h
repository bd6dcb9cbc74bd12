#ifndef BATON_TESTS_CONFORMANCE_TRANSPORT_TRANSPORT_SUITE_H_
#define BATON_TESTS_CONFORMANCE_TRANSPORT_TRANSPORT_SUITE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv_transfer/transport.h"
#include "tests/conformance/transport/recording_handler.h"

namespace baton::transfer {

// The kind of transport under test, from BATON_TRANSPORT: "loopback", "ucx",
// "grpc" or "grpc_tls"; in a FaultTransport without faults if
// BATON_TRANSPORT_DECORATED is set.
std::string TransportUnderTest();
// What such a transport calls itself.
std::string NameUnderTest();
// Before another process is started that shall reach this one.
void PrepareTransportUnderTest();
// A transport of that kind; all of one process can reach each other.
std::unique_ptr<Transport> MakeTransportUnderTest();

// One transport with its record.
struct Node {
  std::unique_ptr<Transport> transport = MakeTransportUnderTest();
  RecordingHandler record;
  uint64_t next_send = 1;

  void Poll() { transport->Progress(&record); }
  LinkId Connect(const Node& peer);
  // `payload` stays with the caller until it was sent.
  SendId Send(LinkId link, std::string_view header,
              absl::Span<const std::byte> payload);

 private:
  std::deque<std::string> headers_;
};

// Polls the nodes until `done`; false after `limit`.
bool PollUntil(std::initializer_list<Node*> nodes,
               const std::function<bool()>& done,
               Duration limit = std::chrono::seconds(20));
void PollFor(std::initializer_list<Node*> nodes, Duration time);

std::vector<std::byte> Pattern(size_t size, uint32_t seed);

}  // namespace baton::transfer

#endif  // BATON_TESTS_CONFORMANCE_TRANSPORT_TRANSPORT_SUITE_H_
