#ifndef BATON_ROUTER_ROUTING_TRANSFER_BLAME_H_
#define BATON_ROUTER_ROUTING_TRANSFER_BLAME_H_

#include <vector>

#include "common/base/monotonic_time.h"
#include "router/routing/worker_index.h"

namespace baton::router {

// What came of a worker's transfers.
struct TransferRecord {
  struct Landing {
    WorkerIndex peer;
    MonotonicTime when;
  };
  int failures = 0;  // since its last landing
  MonotonicTime first_failure;
  std::vector<WorkerIndex> failed_with;  // since then; two are enough
  std::vector<Landing> landings;         // the newest of at most two peers
};

enum class TransferSide { kNone, kPrefill, kDecode };

// A failed transfer names two workers, and only one of them, or the link, may
// be at fault. Says who is when that is clear: after kTransferFailures in a
// row
//  - the one that failed with two different peers, or
//  - the one whose peer has meanwhile landed with another worker;
// and after twice as many, without a sign of who it is, the prefill worker:
// decode workers can do without it, but not the other way round.
inline constexpr int kTransferFailures = 5;
TransferSide RecordTransferFailure(WorkerIndex prefill, TransferRecord* p,
                                   WorkerIndex decode, TransferRecord* d,
                                   MonotonicTime now);
void RecordLanding(WorkerIndex prefill, TransferRecord* p, WorkerIndex decode,
                   TransferRecord* d, MonotonicTime now);

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_TRANSFER_BLAME_H_
