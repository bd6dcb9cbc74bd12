#include "kv_transfer/transfer_session.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::transfer {

std::string_view SessionStateName(SessionState state) {
  switch (state) {
    case SessionState::kOpen:
      return "OPEN";
    case SessionState::kSending:
      return "SENDING";
    case SessionState::kSealed:
      return "SEALED";
    case SessionState::kAcked:
      return "ACKED";
    case SessionState::kAborting:
      return "ABORTING";
  }
  return "unknown";
}

TransferSession::TransferSession(const TransferTerms& terms, LinkId link,
                                 int layers)
    : terms_(terms),
      link_(link),
      layers_(static_cast<uint16_t>(layers)),
      pushed_(terms.begin.block_count) {}

absl::Status TransferSession::Push(uint32_t ordinal,
                                   absl::Span<const std::byte> memory,
                                   uint32_t written_tokens) {
  if (state_ != SessionState::kOpen && state_ != SessionState::kSending) {
    return absl::FailedPreconditionError(
        StrCat("push: the transfer is ", SessionStateName(state_)));
  }
  if (ordinal < terms_.held_blocks() || ordinal >= terms_.begin.block_count) {
    return absl::InvalidArgumentError(
        StrCat("ordinal: got ", ordinal, ", allowed ", terms_.held_blocks(),
               "..", terms_.begin.block_count - 1));
  }
  if (pushed_[ordinal]) {
    return absl::InvalidArgumentError(
        StrCat("ordinal: got ", ordinal, " twice"));
  }
  if (memory.size() != terms_.begin.block_bytes) {
    return absl::InvalidArgumentError(StrCat("memory: got ", memory.size(),
                                             " bytes, allowed ",
                                             terms_.begin.block_bytes));
  }
  if (written_tokens != terms_.WrittenTokens(ordinal)) {
    return absl::InvalidArgumentError(
        StrCat("written_tokens: got ", written_tokens, ", allowed ",
               terms_.WrittenTokens(ordinal), " in block ", ordinal));
  }
  state_ = SessionState::kSending;
  pushed_[ordinal] = true;
  ++pushed_count_;
  queue_.push_back({ordinal, written_tokens, memory});
  return absl::OkStatus();
}

absl::Status TransferSession::Seal(const SealContents& contents) {
  if (state_ != SessionState::kOpen && state_ != SessionState::kSending) {
    return absl::FailedPreconditionError(
        StrCat("seal: the transfer is ", SessionStateName(state_)));
  }
  const uint32_t lacking = terms_.begin.block_count - terms_.held_blocks();
  if (pushed_count_ != lacking) {
    return absl::FailedPreconditionError(StrCat(
        "seal: ", pushed_count_, " of ", lacking, " blocks were pushed"));
  }
  std::string bytes = contents.SerializeAsString();
  if (bytes.size() > kMaxSealBytes) {
    return absl::InvalidArgumentError(
        StrCat("seal: got ", bytes.size(), " bytes, allowed ", kMaxSealBytes));
  }
  seal_ = std::move(bytes);
  state_ = SessionState::kSealed;
  return absl::OkStatus();
}

bool TransferSession::HasNext() const {
  return !queue_.empty() || (seal_ && !seal_taken_);
}

size_t TransferSession::NextBytes() const {
  BATON_CHECK(HasNext());
  return queue_.empty() ? seal_->size() : queue_.front().memory.size();
}

TransferSession::Outgoing TransferSession::TakeNext() {
  BATON_CHECK(HasNext());
  Outgoing next;
  if (queue_.empty()) {
    next.body = SealMark{.frames = frames_};
    next.contents = *std::move(seal_);
    seal_taken_ = true;
    return next;
  }
  const QueuedBlock block = queue_.front();
  queue_.pop_front();
  next.body = Frame{.sequence = frames_++,
                    .ordinal = block.ordinal,
                    .layer_begin = 0,
                    .layer_end = layers_,
                    .written_tokens = block.written_tokens};
  next.memory = block.memory;
  return next;
}

bool TransferSession::Acknowledge(const Ack& ack) {
  if (state_ != SessionState::kSealed || !seal_taken_ ||
      ack.blocks != pushed_count_) {
    return false;
  }
  state_ = SessionState::kAcked;
  return true;
}

void TransferSession::GiveUp(bool answered) {
  state_ = SessionState::kAborting;
  queue_.clear();
  seal_.reset();
  answered_ = answered;
}

}  // namespace baton::transfer
