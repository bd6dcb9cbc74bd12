#ifndef BATON_KV_TRANSFER_LINK_TABLE_H_
#define BATON_KV_TRANSFER_LINK_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kv_transfer/transfer_core.h"
#include "kv_transfer/wire.h"

namespace baton::transfer {

// The links of a TransferCore: one per peer address and direction of
// connecting, their windows, and every message the transport has not given
// back yet. Nothing here knows what a transfer is.
class LinkTable {
 public:
  // Both outlive the table.
  LinkTable(Transport* transport, const TransferOptions* options);

  // The link to a peer, connected if there is none. RESOURCE_EXHAUSTED when
  // all links are taken and none is idle.
  absl::StatusOr<LinkId> LinkTo(std::string_view address);
  // Whether messages of a link are to be heeded; a new incoming link is taken
  // up, or closed when there are too many.
  bool Admit(LinkId link);

  // Encodes and sends. `memory` belongs to the caller until OnSent names
  // `owner`; `contents` is taken over. False when the link is over or closing.
  bool SendFrame(LinkId link, const Message& message,
                 absl::Span<const std::byte> memory, TransferId owner);
  bool SendSeal(LinkId link, const Message& message, std::string contents);
  bool SendControl(LinkId link, const Message& message);

  // Whether a frame of this size may be sent now.
  bool HasRoom(LinkId link, size_t bytes) const;

  // The transport gave a message back: the owner of the frame's memory, zero
  // for all else.
  TransferId OnSent(SendId send);

  // Transfers that use a link keep it from being idle.
  void Use(LinkId link) { Adjust(link, 1); }
  void Unuse(LinkId link) { Adjust(link, -1); }

  // Counts a BEGIN in vain. A peer that only guesses is cut off: true. What
  // strangers, who never had a ticket that was good, may guess in a second they
  // share, so that connecting again does not help.
  bool Refused(LinkId link, MonotonicTime now);
  void Accepted(LinkId link);

  // Closes by force; true if it was not closing yet.
  bool Close(LinkId link);
  void CloseAll();
  void OnClosed(LinkId link);

  size_t size() const { return links_.size(); }

 private:
  struct Link {
    std::string address;  // empty when the peer connected
    bool closing = false;
    int users = 0;
    uint32_t refusals = 0;  // since a ticket was good
    bool stranger = true;   // none ever was
    size_t messages = 0;    // not given back yet
    size_t frames = 0;
    size_t frame_bytes = 0;
  };
  struct Outgoing {
    LinkId link{};
    TransferId owner{};
    EncodedHeader header{};
    std::string contents{};
    size_t frame_bytes = 0;
  };

  Link* Find(LinkId link);
  void Adjust(LinkId link, int users);
  bool Send(LinkId link, Outgoing outgoing, const Message& message,
            absl::Span<const std::byte> memory);
  bool CloseIdle();

  Transport* transport_;
  const TransferOptions* options_;
  std::map<LinkId, Link> links_;
  std::map<std::string, LinkId, std::less<>> by_address_;
  std::map<SendId, Outgoing> outgoing_;
  uint64_t next_send_ = 1;
  uint32_t stranger_refusals_ = 0;  // in the second that ends then
  MonotonicTime stranger_second_{};
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_LINK_TABLE_H_
