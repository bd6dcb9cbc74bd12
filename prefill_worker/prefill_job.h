#ifndef BATON_PREFILL_WORKER_PREFILL_JOB_H_
#define BATON_PREFILL_WORKER_PREFILL_JOB_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/attempt_table.h"
#include "proto/cluster.pb.h"
#include "proto/kv_transfer.pb.h"

namespace baton::prefill {

// An attempt as the prefill scheduler keeps it.
//
//   WAITING --blocks acquired--> RUNNING --last chunk--> SENDING --ack--> gone
//   any --cancel, deadline, failure, every choice ended--> CLOSING --> gone
struct PrefillJob : AttemptJob {
  enum class Phase { kWaiting, kRunning, kSending, kClosing };
  // kNone and kOver: no memory of the job is named by a transfer.
  enum class Link { kNone, kOpening, kOpen, kAborting, kOver };

  uint32_t tokens = 0;  // to compute
  v1::Ticket ticket;
  Phase phase = Phase::kWaiting;
  MonotonicTime accepted, started, sampled;  // started: its first chunk
  uint32_t computed = 0;                     // leading tokens
  uint32_t chunks = 0;
  bool in_step = false;
  std::vector<BlockRef> blocks;
  bool holds_running = false;  // on all blocks
  uint32_t pushed = 0;         // leading blocks held as kSending
  Link link = Link::kNone;
  TransferId transfer;
  v1::SealContents seal;

  bool linked() const { return link != Link::kNone && link != Link::kOver; }
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_JOB_H_
