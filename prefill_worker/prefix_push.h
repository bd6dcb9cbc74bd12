#ifndef BATON_PREFILL_WORKER_PREFIX_PUSH_H_
#define BATON_PREFILL_WORKER_PREFIX_PUSH_H_

#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/scheduler_events.h"

namespace baton::prefill {

// Cached blocks on their way into a landing that asked for them. The attempt
// it is for runs at a decode worker; here it is known by name only, also to an
// AttemptTable, and need not be among the attempts.
//
//   OPENING --transfer opened--> SENDING --ack--> gone
//   SENDING --not wanted any more, transfer failed--> CLOSING --closed--> gone
//   OPENING --not wanted any more--> VOID --opened--> CLOSING
struct PrefixPush {
  enum class Phase { kOpening, kVoid, kSending, kClosing };

  JobId id;  // given by AttemptTable::Add
  SessionId session;
  AttemptId attempt;
  MonotonicTime deadline;
  LandingId landing;
  std::vector<BlockRef> blocks;  // held as kSending
  Phase phase = Phase::kOpening;
  TransferId transfer;

  // Still wanted.
  bool open() const {
    return phase == Phase::kOpening || phase == Phase::kSending;
  }
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFIX_PUSH_H_
