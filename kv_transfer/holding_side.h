#ifndef BATON_KV_TRANSFER_HOLDING_SIDE_H_
#define BATON_KV_TRANSFER_HOLDING_SIDE_H_

#include <deque>
#include <map>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kv_transfer/core_context.h"
#include "kv_transfer/deadline_queue.h"
#include "kv_transfer/transfer_session.h"

namespace baton::transfer {

// The holder's half of TransferCore: opens transfers, feeds their frames into
// the links in turn, hears ACK, REFUSED, ABORT and ABORT_ACK of receivers, and
// ends transfers that take too long.
class HoldingSide {
 public:
  explicit HoldingSide(CoreContext* context) : context_(context) {}

  absl::Status Start(TransferId id, const Ticket& ticket,
                     MonotonicTime deadline);
  absl::Status Push(TransferId id, uint32_t ordinal,
                    absl::Span<const std::byte> memory,
                    uint32_t written_tokens);
  absl::Status Seal(TransferId id, const SealContents& contents);
  void Abort(TransferId id);

  // A message for Recipient::kHolder; they carry no payload.
  void OnHeader(LinkId link, const Message& message);
  // The transport no longer reads a block of this transfer.
  void OnSent(TransferId id);
  void OnLinkClosed(LinkId link, const absl::Status& status);

  // Sends what the windows allow; true if anything.
  bool Pump();
  // True if Pump would send.
  bool CanPump() const;
  bool RunTimers();
  MonotonicTime NextDeadline() const { return deadlines_.Next(); }
  size_t open() const { return sessions_.size(); }

 private:
  TransferSession* Find(TransferId id);
  void Schedule(TransferSession* session);
  void SendNext(TransferSession* session);
  // To ABORTING; `tell`: ABORT is sent and ABORT_ACK awaited.
  void GiveUp(TransferSession* session, const absl::Status& why, bool tell);
  void Fail(TransferSession* session, const absl::Status& why, bool tell);
  void FinishIfOver(TransferSession* session);
  void Forget(TransferSession* session);

  CoreContext* context_;
  std::map<TransferId, TransferSession> sessions_;
  DeadlineQueue<TransferId> deadlines_;
  std::map<LinkId, std::deque<TransferId>> turns_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_HOLDING_SIDE_H_
