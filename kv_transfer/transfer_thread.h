#ifndef BATON_KV_TRANSFER_TRANSFER_THREAD_H_
#define BATON_KV_TRANSFER_TRANSFER_THREAD_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kv_transfer/transfer_core.h"

namespace baton::transfer {

// A TransferCore with its transport on a thread of its own, so that checksums
// and copies never delay tokens. The calls mirror TransferCore and are
// thread-safe; events arrive on the transfer thread through `on_events`, which
// must only hand them on.
class TransferThread {
 public:
  using OnEvents = std::function<void(std::vector<TransferEvent>)>;

  // Takes the transport over.
  TransferThread(std::unique_ptr<Transport> transport, TransferOptions options,
                 OnEvents on_events);
  // Ends the thread; open transfers and landings are dropped with it, after
  // every link was closed.
  ~TransferThread();

  absl::StatusOr<Ticket> OpenLanding(LandingSpec spec);
  void CancelLanding(LandingId landing);
  absl::StatusOr<TransferId> OpenTransfer(const Ticket& ticket,
                                          MonotonicTime deadline);
  void PushBlock(TransferId transfer, uint32_t ordinal,
                 absl::Span<const std::byte> memory, uint32_t written_tokens);
  void Seal(TransferId transfer, SealContents seal);
  void Abort(TransferId transfer);

  TransferCore::Counters counters() const;
  std::string_view transport_name() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_TRANSFER_THREAD_H_
