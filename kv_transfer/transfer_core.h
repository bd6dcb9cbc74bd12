#ifndef BATON_KV_TRANSFER_TRANSFER_CORE_H_
#define BATON_KV_TRANSFER_TRANSFER_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/block_pool.h"
#include "kernels/api/kv_layout.h"
#include "kv_transfer/transport.h"
#include "proto/cluster.pb.h"
#include "proto/kv_transfer.pb.h"

namespace baton::transfer {

using v1::SealContents;
using v1::Ticket;

// Blocks that a transfer may fill. The caller holds them as kLanding and keeps
// holding them until LandingClosed.
struct LandingSpec {
  std::vector<BlockRef> blocks;    // by ordinal
  std::vector<std::byte*> memory;  // block_bytes each, same order
  uint32_t token_count = 0;        // blocks == ceil(token_count / 16)
  Duration timeout{};              // until VERIFIED
  // Leading tokens whose blocks are filled already: a multiple of 16. Those
  // blocks are listed, never written and must not be pushed.
  uint32_t held_tokens = 0;
};

// What the receiving side is told.
struct LandingVerified {  // all blocks checked; attention may read them
  LandingId landing;
  SealContents seal;
  uint64_t bytes = 0;  // payload
  uint32_t blocks = 0;
  Duration transfer_time{};  // BEGIN to verified
};
struct LandingProgress {  // more blocks are checked; told while they come, at
  LandingId landing;      // most every progress_interval
  uint32_t blocks = 0;    // so far
};
struct LandingFailed {  // error, abort by the holder, or deadline; the blocks
  LandingId landing;    // belong in quarantine until LandingClosed
  absl::Status status;
};
struct LandingClosed {  // nothing can write the blocks any more; follows
  LandingId landing;    // LandingFailed and CancelLanding, not Verified
};

// What the holder is told.
struct TransferAcked {  // the receiver has verified everything; unpin
  TransferId transfer;
  uint64_t bytes = 0;
  uint32_t blocks = 0;
};
struct TransferFailed {  // refused, aborted by the receiver, deadline, link
  TransferId transfer;
  absl::Status status;
};
struct TransferClosed {  // nothing reads the pushed memory any more; follows
  TransferId transfer;   // TransferFailed and Abort, not Acked
};

using TransferEvent =
    std::variant<LandingVerified, LandingProgress, LandingFailed, LandingClosed,
                 TransferAcked, TransferFailed, TransferClosed>;

struct TransferOptions {
  WorkerEpoch epoch;
  std::string fingerprint;  // 32 bytes
  kernels::KvLayout layout;
  // After ABORT was sent, how long to wait for ABORT_ACK before the link is
  // closed by force.
  Duration abort_grace = std::chrono::seconds(1);
  // Between two words that a landing's blocks arrive.
  Duration progress_interval = std::chrono::milliseconds(250);
  size_t max_links = 256;
  size_t max_landings = 4096;
  // Bytes of frames in flight per link; two frames always fit. Transfers on
  // a link take turns.
  size_t link_window_bytes = 8 << 20;
  // 16 random bytes for nonces; random 64-bit for landing ids.
  std::function<void(absl::Span<std::byte>)> random;
};

// Both sides of the transfer protocol (DESIGN section 7) over one transport:
// landing table, transfer sessions, links to peers. Pure but for the
// transport: single-threaded, time by argument. No call blocks.
class TransferCore {
 public:
  // `transport` outlives the core.
  TransferCore(Transport* transport, TransferOptions options);
  ~TransferCore();

  // --- receiving side ---
  // INVALID_ARGUMENT when counts disagree; RESOURCE_EXHAUSTED at the limit.
  absl::StatusOr<Ticket> OpenLanding(LandingSpec spec, MonotonicTime now);
  // Ends a landing that is not VERIFIED: LandingClosed follows (at once when
  // no transfer has begun). After VERIFIED and for unknown ids: no effect.
  void CancelLanding(LandingId landing, MonotonicTime now);

  // --- holding side ---
  // Checks the ticket's form and starts BEGIN. INVALID_ARGUMENT names the
  // field. `deadline` bounds the whole transfer.
  absl::StatusOr<TransferId> OpenTransfer(const Ticket& ticket,
                                          MonotonicTime deadline,
                                          MonotonicTime now);
  // Queues a whole block. The memory stays valid and unchanged until
  // TransferAcked or TransferClosed. Each ordinal once; `written_tokens` is
  // 16 but for the last block.
  absl::Status PushBlock(TransferId transfer, uint32_t ordinal,
                         absl::Span<const std::byte> memory,
                         uint32_t written_tokens);
  // After the last block. TransferAcked or TransferFailed follows.
  absl::Status Seal(TransferId transfer, const SealContents& seal);
  // Ends a transfer; TransferClosed follows. Unknown ids: no effect.
  void Abort(TransferId transfer, MonotonicTime now);

  // Runs the transport and timers; appends what happened to `events`. True if
  // anything did.
  bool Poll(MonotonicTime now, std::vector<TransferEvent>* events);
  // When Poll must run next even if the transport is silent; kNever if idle.
  MonotonicTime NextDeadline() const;

  // Counters for metrics and tests.
  struct Counters {
    uint64_t frames_sent = 0, frames_received = 0;
    uint64_t payload_bytes_sent = 0, payload_bytes_received = 0;
    uint64_t crc_failures = 0, refused_begins = 0, stale_messages = 0;
    uint64_t forced_closes = 0, deadlines = 0;
    uint64_t cut_off_peers = 0;  // links closed because they only guessed
  };
  const Counters& counters() const;
  size_t open_landings() const;
  size_t open_transfers() const;

  // --- for drivers on another thread than their callers ---
  // OpenLanding and OpenTransfer in two halves: kv_transfer/ticket.h checks
  // and issues anywhere, these act. The spec is checked, the ticket issued for
  // it by this core's options; `id` was never used before.
  void AdoptLanding(const Ticket& ticket, LandingSpec spec, MonotonicTime now);
  absl::Status StartTransfer(TransferId id, const Ticket& ticket,
                             MonotonicTime deadline, MonotonicTime now);
  // Called before a BEGIN is refused because its landing is unknown, so that
  // landings whose tickets are out already can be adopted first. It may call
  // AdoptLanding and nothing else.
  void OnUnknownLanding(std::function<void()> adopt);
  // Closes every link by force; Poll until open_links() is zero before the
  // transport or the core goes.
  void CloseLinks();
  size_t open_links() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_TRANSFER_CORE_H_
