#ifndef BATON_TESTS_CONFORMANCE_TRANSPORT_RECORDING_HANDLER_H_
#define BATON_TESTS_CONFORMANCE_TRANSPORT_RECORDING_HANDLER_H_

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv_transfer/transport.h"

namespace baton::transfer {

// Remembers what a transport tells, and checks on every call that it keeps to
// the contract of TransportHandler.
class RecordingHandler : public TransportHandler {
 public:
  struct Received {
    LinkId link;
    std::string header;
    std::vector<std::byte> payload;  // where it was received
    size_t announced = 0;
    bool complete = false;
  };

  absl::Span<std::byte> OnHeader(LinkId link,
                                 absl::Span<const std::byte> header,
                                 size_t payload_bytes) override {
    EXPECT_FALSE(closed.contains(link)) << "callback after OnClosed";
    EXPECT_LE(header.size(), kMaxHeaderBytes);
    Received& received = messages.emplace_back();
    received.link = link;
    received.header = ToString(header);
    received.announced = payload_bytes;
    if (discard && discard(received.header)) return {};
    received.payload.resize(payload_bytes);
    return absl::MakeSpan(received.payload);
  }

  void OnMessage(LinkId link, absl::Span<const std::byte> header,
                 absl::Span<const std::byte> payload) override {
    EXPECT_FALSE(closed.contains(link)) << "callback after OnClosed";
    for (Received& received : messages) {
      if (received.link != link || received.complete ||
          received.header != ToString(header)) {
        continue;
      }
      EXPECT_EQ(payload.size(), received.payload.size());
      EXPECT_TRUE(payload.empty() || payload.data() == received.payload.data());
      received.complete = true;
      return;
    }
    ADD_FAILURE() << "OnMessage without OnHeader";
  }

  void OnSent(LinkId link, SendId send, const absl::Status& status) override {
    EXPECT_FALSE(closed.contains(link)) << "callback after OnClosed";
    EXPECT_TRUE(sent.emplace(std::pair(link, send), status).second)
        << "OnSent twice";
    if (on_sent) on_sent(send);
  }

  void OnClosed(LinkId link, const absl::Status& status) override {
    EXPECT_TRUE(closed.emplace(link, status).second) << "OnClosed twice";
    EXPECT_FALSE(status.ok());
  }

  size_t Complete() const {
    size_t count = 0;
    for (const Received& received : messages) count += received.complete;
    return count;
  }

  std::deque<Received> messages;  // in the order of their headers
  std::map<std::pair<LinkId, SendId>, absl::Status> sent;
  std::map<LinkId, absl::Status> closed;
  std::function<bool(const std::string& header)> discard;
  std::function<void(SendId)> on_sent;

 private:
  static std::string ToString(absl::Span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_CONFORMANCE_TRANSPORT_RECORDING_HANDLER_H_
