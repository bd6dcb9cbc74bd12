#ifndef BATON_TESTS_UNIT_KV_TRANSFER_FAKE_NETWORK_H_
#define BATON_TESTS_UNIT_KV_TRANSFER_FAKE_NETWORK_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kv_transfer/transport.h"

namespace baton::transfer {

class FakeNetwork;

// A transport whose messages go nowhere until the test says so.
class FakeTransport final : public Transport {
 public:
  FakeTransport(FakeNetwork* network, std::string address)
      : network_(network), address_(std::move(address)) {}

  std::string_view name() const override { return "fake"; }
  std::string address() const override { return address_; }
  absl::StatusOr<LinkId> Connect(std::string_view address) override;
  absl::Status Send(LinkId link, SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override;
  void Close(LinkId link) override;
  bool Progress(TransportHandler* handler) override;
  void Wait(Duration) override {}
  void Wake() override {}

  // Runs in the next Progress.
  void Soon(std::function<void(TransportHandler*)> call) {
    due_.push_back(std::move(call));
  }

 private:
  FakeNetwork* network_;
  std::string address_;
  std::deque<std::function<void(TransportHandler*)>> due_;
};

// A message that was sent and has not arrived.
struct Packet {
  FakeTransport* from;
  FakeTransport* to;
  LinkId from_link;
  LinkId to_link;
  SendId send;
  std::vector<std::byte> header;
  absl::Span<const std::byte> payload;  // the sender's memory
  bool copy = false;                    // a duplicate: OnSent was told
  std::vector<std::byte> own;           // payload of a duplicate

  // wire.h: 1 BEGIN 2 frame 3 SEAL 4 ACK 5 ABORT 6 ABORT_ACK 7 REFUSED
  int type() const { return static_cast<int>(header[6]); }
};

// The wire between FakeTransports, worked by hand.
class FakeNetwork {
 public:
  FakeTransport* Add(std::string address);

  std::vector<Packet> wire;  // in the order of sending
  // Links that the receiver of a Close does not hear about, and whose OnClosed
  // waits for FinishClose.
  bool hold_closes = false;
  // Messages delivered meanwhile are reported sent with ReleaseSent only.
  bool hold_sent = false;

  // Takes a packet off the wire and hands it over.
  void Deliver(size_t index);
  // Header first; the payload is written when `finish` of the result runs.
  std::function<void()> DeliverHeader(size_t index);
  // Off the wire; the sender believes that it was sent.
  void Drop(size_t index);
  // A second copy at the end of the wire.
  void Duplicate(size_t index);
  void ToTheEnd(size_t index);
  // A peer's own words: a message that no core made.
  void Inject(FakeTransport* from, LinkId link, std::vector<std::byte> header,
              absl::Span<const std::byte> payload);
  void FinishClose();
  void ReleaseSent();
  bool IsOpen(FakeTransport* transport, LinkId link) const;
  size_t closes() const { return closes_; }

 private:
  friend class FakeTransport;
  struct Ends {
    FakeTransport* transports[2];
    LinkId links[2];
    bool open = true;
  };

  Ends* Find(const FakeTransport* transport, LinkId link);
  static int Side(const Ends& ends, const FakeTransport* transport,
                  LinkId link) {
    return ends.transports[0] == transport && ends.links[0] == link ? 0 : 1;
  }
  void CloseLink(Ends* ends);

  std::map<std::string, std::unique_ptr<FakeTransport>, std::less<>>
      transports_;
  std::deque<Ends> links_;
  std::vector<Ends*> closing_;
  std::vector<std::function<void()>> held_sent_;
  uint64_t next_link_ = 1;
  size_t closes_ = 0;
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_UNIT_KV_TRANSFER_FAKE_NETWORK_H_
