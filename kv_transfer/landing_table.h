#ifndef BATON_KV_TRANSFER_LANDING_TABLE_H_
#define BATON_KV_TRANSFER_LANDING_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kv_transfer/deadline_queue.h"
#include "kv_transfer/landing.h"

namespace baton::transfer {

// All landings of a receiver that are not FREE, with one deadline each. Pure
// and single-threaded; iterates in id order, so that it is deterministic.
class LandingTable {
 public:
  // `options` outlives the table.
  explicit LandingTable(const TransferOptions* options);

  // RESERVED until `deadline`.
  void Add(const Ticket& ticket, LandingSpec spec, MonotonicTime deadline);

  // Checks BEGIN and redeems the ticket, once: the landing is RECEIVING. Null
  // for a second copy of the BEGIN that redeemed it. Otherwise, in this order:
  // FAILED_PRECONDITION   worker_epoch: of an earlier life of this worker
  // NOT_FOUND             no such landing, or another nonce: not told apart
  // ALREADY_EXISTS        another transfer redeemed the ticket
  // INVALID_ARGUMENT      fingerprint, tokens or blocks differ; names which
  absl::StatusOr<Landing*> Redeem(LinkId link, const TransferKey& key,
                                  const Begin& begin, MonotonicTime now);

  // The landing that this transfer redeemed over this link, or null.
  Landing* Find(LinkId link, const TransferKey& key);
  Landing* Find(LandingId id);
  std::vector<LandingId> OnLink(LinkId link) const;
  void Remove(LandingId id);

  void SetDeadline(LandingId id, MonotonicTime when);
  Landing* PopDue(MonotonicTime now);
  MonotonicTime NextDeadline() const { return deadlines_.Next(); }
  size_t size() const { return landings_.size(); }

 private:
  const TransferOptions* options_;
  std::map<LandingId, Landing> landings_;
  DeadlineQueue<LandingId> deadlines_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_LANDING_TABLE_H_
