#ifndef BATON_KV_TRANSFER_UCX_UCX_LINK_H_
#define BATON_KV_TRANSFER_UCX_UCX_LINK_H_

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/monotonic_time.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

class UcxEngine;

// What precedes a user's header on the wire. A link is named by the random
// token that its connector chose.
struct UcxPrefix {
  uint64_t token = 0;
  uint64_t sequence = 0;        // of data messages, per direction, from 0
  uint64_t from_connector = 0;  // 1 or 0
};

// One message on its way out; lives until UCX gives it back.
struct UcxSend {
  UcxEngine* engine = nullptr;
  LinkId link;
  SendId send;  // zero for messages of the transport itself
  std::array<std::byte, sizeof(UcxPrefix) + kMaxHeaderBytes> header;
  size_t header_bytes = 0;
  absl::Span<const std::byte> payload;
};

// One rendezvous on its way in.
struct UcxReceive {
  UcxEngine* engine = nullptr;
  LinkId link;
  std::string header;
  absl::Span<std::byte> place;
};

// A message that came before its turn, kept until those before it came.
struct UcxEarly {
  std::string header;
  void* descriptor = nullptr;  // UCX's, to be received or released
  bool rendezvous = false;
  std::vector<std::byte> copy{};  // the payload when UCX did not leave it
  size_t payload_bytes = 0;
};

// One link of the UCX transport. Plain state; UcxEngine acts on it.
struct UcxLink {
  UcxEngine* engine = nullptr;
  LinkId id;
  uint64_t token = 0;
  bool connector = false;
  ucp_ep_h endpoint = nullptr;

  bool welcomed = false;                         // the peer knows the link
  std::deque<std::unique_ptr<UcxSend>> waiting;  // for that
  uint64_t next_out = 0;
  uint64_t next_in = 0;
  std::map<uint64_t, UcxEarly> early;

  size_t sends = 0;     // UCX holds
  size_t receives = 0;  // UCX holds

  // Closing: farewell under way, then the forced close, then the fence.
  std::optional<absl::Status> ending;
  bool farewell_pending = false;
  MonotonicTime force_at{};
  void* close_request = nullptr;
  bool endpoint_closed = false;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_LINK_H_
