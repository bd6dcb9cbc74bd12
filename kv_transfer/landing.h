#ifndef BATON_KV_TRANSFER_LANDING_H_
#define BATON_KV_TRANSFER_LANDING_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kv_transfer/ticket.h"

namespace baton::transfer {

enum class LandingState : uint8_t {
  kReserved,    // the ticket is out, nothing has begun
  kReceiving,   // BEGIN was accepted
  kVerified,    // every block and the seal are here and checked
  kQuarantine,  // given up; a posted receive may still write the blocks
};

std::string_view LandingStateName(LandingState state);

// One landing as its receiver sees it: which block arrived, which receive is
// outstanding. FREE is the absence of the object. Pure: no clock, no
// transport; single-threaded.
class Landing {
 public:
  // `spec` is checked; the ticket was issued for it.
  Landing(const TransferTerms& terms, LandingSpec spec, int layers);

  // RESERVED to RECEIVING, for the transfer that redeemed the ticket.
  void Begin(LinkId link, TransferId transfer, MonotonicTime now);

  // Where the payload of a frame, or of the seal, goes: a receive is posted
  // there. Empty for a message that came before: it changes nothing. A status
  // is a breach of protocol and names the field. Requires RECEIVING.
  absl::StatusOr<absl::Span<std::byte>> PostFrame(const Frame& frame,
                                                  size_t payload_bytes);
  absl::StatusOr<absl::Span<std::byte>> PostSeal(const SealMark& seal,
                                                 size_t payload_bytes);

  // A posted receive ended; in any state.
  void ReceiveEnded() { --posted_; }
  // Every posted receive ended: the link is closed.
  void LinkClosed() { posted_ = 0; }
  // Its payload was checked. Requires RECEIVING.
  void FrameVerified(const Frame& frame, size_t payload_bytes);
  // INVALID_ARGUMENT when the bytes posted are not a SealContents.
  absl::Status SealVerified();

  // RECEIVING to VERIFIED if all is here; false otherwise.
  bool TryVerify();
  // To QUARANTINE. Requires RECEIVING.
  void GiveUp();

  // The holder has said that no frame follows.
  void HolderFinished() { holder_finished_ = true; }
  // The holder waits for ABORT_ACK.
  void OweAbortAck() { owes_abort_ack_ = true; }
  bool TakeOwedAbortAck() { return std::exchange(owes_abort_ack_, false); }
  // In QUARANTINE: nothing outstanding can write the blocks.
  bool quiet() const { return posted_ == 0; }
  // In QUARANTINE: and nothing ever will.
  bool over() const { return quiet() && holder_finished_; }

  const TransferKey& key() const { return terms_.key; }
  LandingId id() const { return terms_.key.landing; }
  const TransferTerms& terms() const { return terms_; }
  LandingState state() const { return state_; }
  LinkId link() const { return link_; }
  MonotonicTime begun() const { return begun_; }
  // Since the owner last heard that blocks arrive, or since the beginning.
  Duration Untold(MonotonicTime now) const { return now - told_; }
  void Told(MonotonicTime now) { told_ = now; }
  uint64_t bytes() const { return bytes_; }
  // Blocks received and checked in this transfer.
  uint32_t verified_blocks() const { return verified_; }
  const SealContents& seal() const { return *seal_; }

 private:
  enum class Arrival : uint8_t { kMissing, kPosted, kVerified, kHeld };
  struct Block {
    Arrival arrival = Arrival::kMissing;
    uint64_t sequence = 0;
  };

  absl::Status CheckFrame(const Frame& frame, size_t payload_bytes) const;
  uint32_t expected() const {
    return terms_.begin.block_count - terms_.held_blocks();
  }

  TransferTerms terms_;
  LandingSpec spec_;
  uint16_t layers_;
  LandingState state_ = LandingState::kReserved;
  LinkId link_;
  MonotonicTime begun_{};
  MonotonicTime told_{};
  std::vector<Block> blocks_;
  uint32_t verified_ = 0;
  uint32_t posted_ = 0;
  uint64_t bytes_ = 0;
  bool seal_posted_ = false;
  std::string seal_bytes_;
  std::optional<SealContents> seal_;
  bool holder_finished_ = false;
  bool owes_abort_ack_ = false;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_LANDING_H_
