#ifndef BATON_KV_TRANSFER_TRANSFER_SESSION_H_
#define BATON_KV_TRANSFER_TRANSFER_SESSION_H_

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kv_transfer/ticket.h"

namespace baton::transfer {

enum class SessionState : uint8_t {
  kOpen,      // BEGIN is on its way, no block was pushed
  kSending,   // blocks are queued or under way
  kSealed,    // all blocks and the seal are queued or under way
  kAcked,     // the receiver verified everything
  kAborting,  // given up; sends may still read the blocks
};

std::string_view SessionStateName(SessionState state);

// One transfer as its holder sees it: what is queued, what the transport still
// reads. CLOSED is the absence of the object. Pure: no clock, no transport;
// single-threaded.
class TransferSession {
 public:
  TransferSession(const TransferTerms& terms, LinkId link, int layers);

  // INVALID_ARGUMENT names the field; FAILED_PRECONDITION in a wrong state.
  absl::Status Push(uint32_t ordinal, absl::Span<const std::byte> memory,
                    uint32_t written_tokens);
  // FAILED_PRECONDITION while a block that the receiver lacks was not pushed.
  absl::Status Seal(const SealContents& contents);

  // The next frame or seal in order. A frame's payload is the caller's memory;
  // a seal's belongs to the result.
  struct Outgoing {
    MessageBody body;
    absl::Span<const std::byte> memory;  // of a frame
    std::string contents;                // of a seal
  };
  bool HasNext() const;
  // Payload bytes of the next one. Requires HasNext().
  size_t NextBytes() const;
  Outgoing TakeNext();

  // The transport reads a block's memory from SendStarted to SendEnded.
  void SendStarted() { ++sending_; }
  void SendEnded() { --sending_; }
  bool quiet() const { return sending_ == 0; }

  // SEALED to ACKED; false when `ack` cannot be true: nothing changes.
  bool Acknowledge(const Ack& ack);
  // To ABORTING: what is queued is dropped. `answered`: nothing is expected
  // from the receiver any more.
  void GiveUp(bool answered);
  void ReceiverAnswered() { answered_ = true; }
  // In ABORTING: nothing reads the blocks and the receiver knows.
  bool over() const { return quiet() && answered_; }

  const TransferKey& key() const { return terms_.key; }
  TransferId id() const { return terms_.key.transfer; }
  const TransferTerms& terms() const { return terms_; }
  SessionState state() const { return state_; }
  LinkId link() const { return link_; }
  uint32_t pushed_blocks() const { return pushed_count_; }
  uint64_t pushed_bytes() const {
    return pushed_count_ * terms_.begin.block_bytes;
  }
  // Whether it waits in its link's round robin.
  bool scheduled = false;

 private:
  struct QueuedBlock {
    uint32_t ordinal;
    uint32_t written_tokens;
    absl::Span<const std::byte> memory;
  };

  TransferTerms terms_;
  LinkId link_;
  uint16_t layers_;
  SessionState state_ = SessionState::kOpen;
  std::deque<QueuedBlock> queue_;
  std::vector<bool> pushed_;
  uint32_t pushed_count_ = 0;
  uint64_t frames_ = 0;
  std::optional<std::string> seal_;
  bool seal_taken_ = false;
  uint32_t sending_ = 0;
  bool answered_ = false;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_TRANSFER_SESSION_H_
