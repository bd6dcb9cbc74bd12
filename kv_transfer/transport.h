#ifndef BATON_KV_TRANSFER_TRANSPORT_H_
#define BATON_KV_TRANSFER_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"

namespace baton::transfer {

// One bidirectional channel to a peer, in this process's numbering; never
// reused.
using LinkId = StrongId<struct LinkIdTag, uint64_t>;
// The caller's name for one Send on a link.
using SendId = StrongId<struct SendIdTag, uint64_t>;

inline constexpr size_t kMaxHeaderBytes = 256;
inline constexpr size_t kMaxAddressBytes = 4096;

// What a transport tells its user, always from inside Progress(). A message is
// a header of at most kMaxHeaderBytes and an optional payload.
class TransportHandler {
 public:
  virtual ~TransportHandler() = default;

  // A header came in and `payload_bytes` will follow: where to put them.
  // The span returned has exactly that size and stays valid until OnMessage or
  // OnClosed of the link; an empty one discards the payload. Headers of one
  // link arrive in the order they were sent.
  virtual absl::Span<std::byte> OnHeader(LinkId link,
                                         absl::Span<const std::byte> header,
                                         size_t payload_bytes) = 0;
  // The payload is complete (or was discarded). The transport will not touch
  // the span again. Order: per link as sent, unless the transport says
  // otherwise; users must not depend on it.
  virtual void OnMessage(LinkId link, absl::Span<const std::byte> header,
                         absl::Span<const std::byte> payload) = 0;
  // The header and payload memory of a Send may be reused.
  virtual void OnSent(LinkId link, SendId send, const absl::Status& status) = 0;
  // The link is over and, this is the fence: nothing of it can read or write
  // caller memory any more, and no callback for it follows. Every Send has had
  // its OnSent before.
  virtual void OnClosed(LinkId link, const absl::Status& status) = 0;
};

// Moves messages between processes. Two-sided only. Single-threaded, except
// Wake(). Does not interpret anything it carries.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "loopback", "ucx"
  // Opaque bytes by which a peer connects; at most kMaxAddressBytes.
  virtual std::string address() const = 0;
  // Starts a link; failure to reach the peer arrives as OnClosed.
  // INVALID_ARGUMENT for a malformed address.
  virtual absl::StatusOr<LinkId> Connect(std::string_view address) = 0;
  // Starts sending; header and payload stay valid until OnSent. Returns
  // without calling back. NOT_FOUND when the link is over.
  virtual absl::Status Send(LinkId link, SendId send,
                            absl::Span<const std::byte> header,
                            absl::Span<const std::byte> payload) = 0;
  // Ends a link by force; OnClosed follows within a bounded time. Idempotent.
  virtual void Close(LinkId link) = 0;
  // Runs the callbacks that are due; true if there was any.
  virtual bool Progress(TransportHandler* handler) = 0;
  // Sleeps until Progress has something to do, Wake was called, or `timeout`.
  virtual void Wait(Duration timeout) = 0;
  // Ends the current or next Wait. Any thread.
  virtual void Wake() = 0;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_TRANSPORT_H_
