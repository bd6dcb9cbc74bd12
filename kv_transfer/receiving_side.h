#ifndef BATON_KV_TRANSFER_RECEIVING_SIDE_H_
#define BATON_KV_TRANSFER_RECEIVING_SIDE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kv_transfer/core_context.h"
#include "kv_transfer/landing_table.h"

namespace baton::transfer {

// The receiver's half of TransferCore: answers BEGIN, frames, SEAL, ABORT and
// ABORT_ACK of holders, and ends landings that take too long.
class ReceivingSide {
 public:
  explicit ReceivingSide(CoreContext* context);

  void Adopt(const Ticket& ticket, LandingSpec spec);
  void Cancel(LandingId id);

  // A header for Recipient::kReceiver: where its payload goes, empty to
  // discard it. Messages without payload are dealt with here entirely.
  absl::Span<std::byte> OnHeader(LinkId link, const Message& message,
                                 size_t payload_bytes);
  // The payload that OnHeader gave a place to; its CRC is checked here.
  void OnPayload(LinkId link, const Message& message,
                 absl::Span<const std::byte> header,
                 absl::Span<const std::byte> payload);
  // A BEGIN of another protocol version.
  void RefuseVersion(LinkId link, const TransferKey& key,
                     const absl::Status& status);
  void OnLinkClosed(LinkId link, const absl::Status& status);

  bool RunTimers();
  MonotonicTime NextDeadline() const { return table_.NextDeadline(); }
  size_t open() const { return table_.size(); }

 private:
  void OnBegin(LinkId link, const TransferKey& key, const Begin& begin);
  void Refuse(LinkId link, const TransferKey& key, const absl::Status& status);
  absl::Span<std::byte> OnSealMark(Landing* landing, const SealMark& seal,
                                   size_t payload_bytes);
  void OnAbort(LinkId link, const TransferKey& key, const AbortNotice& notice);
  void OnAbortAck(LinkId link, const TransferKey& key);

  // RECEIVING to QUARANTINE; tells the holder why.
  void Abort(Landing* landing, const absl::Status& why);
  // The same, and tells the caller.
  void Fail(Landing* landing, const absl::Status& why);
  void TellProgress(Landing* landing);
  void VerifyIfComplete(Landing* landing);
  void CloseIfOver(Landing* landing);
  void Forget(Landing* landing);

  CoreContext* context_;
  LandingTable table_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_RECEIVING_SIDE_H_
