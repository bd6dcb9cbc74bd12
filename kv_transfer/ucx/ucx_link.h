#ifndef BATON_KV_TRANSFER_UCX_UCX_LINK_H_
#define BATON_KV_TRANSFER_UCX_UCX_LINK_H_

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/monotonic_time.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

class UcxEngine;
class UcxWorker;

// What precedes a user's header on the wire. The acceptor's first message has
// no user header: it is the welcome.
struct UcxPrefix {
  uint64_t sequence = 0;  // of messages, per link and direction, from 0
};

// One message on its way out.
struct UcxSend {
  UcxEngine* engine = nullptr;
  LinkId link;
  SendId send;  // zero for the welcome
  std::array<std::byte, sizeof(UcxPrefix) + kMaxHeaderBytes> header;
  size_t header_bytes = 0;
  absl::Span<const std::byte> payload;
  std::list<UcxSend>::iterator self;  // in UcxLink::sends
};

// One rendezvous on its way in.
struct UcxReceive {
  UcxEngine* engine = nullptr;
  LinkId link;
  std::string header;
  absl::Span<std::byte> place;
  std::list<UcxReceive>::iterator self;  // in UcxLink::receives
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
  UcxWorker* worker = nullptr;  // null once it is gone
  ucp_ep_h endpoint = nullptr;
  // UCX mixes up what is sent while it still connects, so the connector keeps
  // its messages until the acceptor's welcome.
  bool welcomed = false;
  std::list<UcxSend> waiting;

  uint64_t next_out = 0;
  uint64_t next_in = 0;
  std::map<uint64_t, UcxEarly> early;

  std::list<UcxSend> sends;        // UCX holds
  std::list<UcxReceive> receives;  // UCX holds

  // Closing: the forced close, then the fence.
  std::optional<absl::Status> ending;
  MonotonicTime close_by = kNever;
  void* close_request = nullptr;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_LINK_H_
