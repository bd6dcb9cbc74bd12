#ifndef BATON_TESTS_FUZZ_TRANSFER_PEER_H_
#define BATON_TESTS_FUZZ_TRANSFER_PEER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kv_transfer/wire.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/kv_transfer/fake_network.h"

namespace baton::transfer {

using Bytes = std::vector<std::byte>;

inline absl::Span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The peer's end of the wire: links to the core and what it puts on them.
class Peer {
 public:
  Peer(FakeNetwork* net, fuzz::FuzzInput* input)
      : net_(net), input_(input), transport_(net->Add("peer")) {}

  // A link to talk on; new ones now and then. Null when there is none.
  std::optional<LinkId> AnyLink() {
    if (links_.empty() || (links_.size() < 3 && input_->Byte() > 250)) {
      links_.push_back(*transport_->Connect("core"));
    }
    const LinkId link =
        links_[input_->Below(static_cast<uint32_t>(links_.size()))];
    if (net_->IsOpen(transport_, link)) return link;
    std::erase(links_, link);
    return std::nullopt;
  }
  // One that the core opened.
  void UseLink(LinkId link) {
    if (std::ranges::find(links_, link) == links_.end()) links_.push_back(link);
  }
  void Close() {
    if (const auto link = AnyLink()) transport_->Close(*link);
  }
  // What goes out is the message, or that with one byte changed. Deviations
  // take the same input as the straight way, so that one mutated byte of an
  // input makes one of them and leaves what follows as it was.
  void Send(LinkId link, const Message& message, Bytes payload, uint8_t spoil) {
    const EncodedHeader encoded = EncodeHeader(message, payload);
    Bytes header(encoded.bytes.begin(), encoded.bytes.begin() + encoded.size);
    const size_t where = input_->Byte();
    if (Spoils(spoil)) {
      Bytes& hit = payload.empty() || spoil % 2 == 0 ? header : payload;
      hit[where % hit.size()] ^= static_cast<std::byte>(spoil);
    }
    net_->Inject(transport_, link, std::move(header), payload);
  }
  static bool Spoils(uint8_t spoil) { return spoil >= 224; }
  void SendRaw(LinkId link) {
    const std::string_view header = input_->Bytes(input_->Below(200));
    const std::string_view payload = input_->Bytes(input_->Below(100));
    net_->Inject(transport_, link,
                 {AsBytes(header).begin(), AsBytes(header).end()},
                 AsBytes(payload));
  }
  FakeTransport* transport() const { return transport_; }

 private:
  FakeNetwork* net_;
  fuzz::FuzzInput* input_;
  FakeTransport* transport_;
  std::vector<LinkId> links_;
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_FUZZ_TRANSFER_PEER_H_
