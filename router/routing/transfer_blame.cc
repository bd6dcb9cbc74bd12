#include "router/routing/transfer_blame.h"

#include <algorithm>

namespace baton::router {
namespace {

constexpr size_t kPeers = 2;

void AddFailure(TransferRecord* record, WorkerIndex peer, MonotonicTime now) {
  if (record->failures++ == 0) record->first_failure = now;
  auto& peers = record->failed_with;
  if (peers.size() < kPeers &&
      std::find(peers.begin(), peers.end(), peer) == peers.end()) {
    peers.push_back(peer);
  }
}

void AddLanding(TransferRecord* record, WorkerIndex peer, MonotonicTime now) {
  record->failures = 0;
  record->failed_with.clear();
  std::erase_if(record->landings,
                [&](const auto& landing) { return landing.peer == peer; });
  record->landings.insert(record->landings.begin(), {peer, now});
  if (record->landings.size() > kPeers) record->landings.pop_back();
}

bool LandedElsewhere(const TransferRecord& record, WorkerIndex except,
                     MonotonicTime since) {
  return std::any_of(record.landings.begin(), record.landings.end(),
                     [&](const auto& landing) {
                       return landing.peer != except && landing.when >= since;
                     });
}

bool IsClear(WorkerIndex self, const TransferRecord& record,
             const TransferRecord& peer) {
  return record.failures >= kTransferFailures &&
         (record.failed_with.size() >= kPeers ||
          LandedElsewhere(peer, self, record.first_failure));
}

}  // namespace

TransferSide RecordTransferFailure(WorkerIndex prefill, TransferRecord* p,
                                   WorkerIndex decode, TransferRecord* d,
                                   MonotonicTime now) {
  AddFailure(p, decode, now);
  AddFailure(d, prefill, now);
  TransferSide side = TransferSide::kNone;
  if (IsClear(decode, *d, *p)) {
    side = TransferSide::kDecode;
    d->failures = 0;
    d->failed_with.clear();
  } else if (IsClear(prefill, *p, *d) || p->failures >= 2 * kTransferFailures) {
    side = TransferSide::kPrefill;
    p->failures = 0;
    p->failed_with.clear();
  }
  return side;
}

void RecordLanding(WorkerIndex prefill, TransferRecord* p, WorkerIndex decode,
                   TransferRecord* d, MonotonicTime now) {
  AddLanding(p, decode, now);
  AddLanding(d, prefill, now);
}

}  // namespace baton::router
