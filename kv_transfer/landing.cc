#include "kv_transfer/landing.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {

std::string_view LandingStateName(LandingState state) {
  switch (state) {
    case LandingState::kReserved:
      return "RESERVED";
    case LandingState::kReceiving:
      return "RECEIVING";
    case LandingState::kVerified:
      return "VERIFIED";
    case LandingState::kQuarantine:
      return "QUARANTINE";
  }
  return "unknown";
}

Landing::Landing(const TransferTerms& terms, LandingSpec spec, int layers)
    : terms_(terms),
      spec_(std::move(spec)),
      layers_(static_cast<uint16_t>(layers)),
      blocks_(spec_.blocks.size()) {
  for (uint32_t i = 0; i < terms_.held_blocks(); ++i) {
    blocks_[i].arrival = Arrival::kHeld;
  }
}

void Landing::Begin(LinkId link, TransferId transfer, MonotonicTime now) {
  BATON_CHECK(state_ == LandingState::kReserved);
  state_ = LandingState::kReceiving;
  link_ = link;
  terms_.key.transfer = transfer;
  begun_ = told_ = now;
}

absl::Status Landing::CheckFrame(const Frame& frame,
                                 size_t payload_bytes) const {
  if (frame.ordinal >= blocks_.size()) {
    return absl::InvalidArgumentError(StrCat(
        "ordinal: got ", frame.ordinal, ", allowed 0..", blocks_.size() - 1));
  }
  if (blocks_[frame.ordinal].arrival == Arrival::kHeld) {
    return absl::InvalidArgumentError(
        StrCat("ordinal: got ", frame.ordinal, ", which is held already"));
  }
  if (payload_bytes != terms_.begin.block_bytes) {
    return absl::InvalidArgumentError(StrCat(
        "length: got ", payload_bytes, ", allowed ", terms_.begin.block_bytes));
  }
  if (frame.layer_begin != 0 || frame.layer_end != layers_) {
    return absl::InvalidArgumentError(
        StrCat("layer range: got ", frame.layer_begin, "..", frame.layer_end,
               ", allowed 0..", layers_));
  }
  const uint32_t written = terms_.WrittenTokens(frame.ordinal);
  if (frame.written_tokens != written) {
    return absl::InvalidArgumentError(
        StrCat("written_tokens: got ", frame.written_tokens, ", allowed ",
               written, " in block ", frame.ordinal));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> Landing::PostFrame(const Frame& frame,
                                                         size_t payload_bytes) {
  BATON_CHECK(state_ == LandingState::kReceiving);
  BATON_RETURN_IF_ERROR(CheckFrame(frame, payload_bytes));
  Block& block = blocks_[frame.ordinal];
  if (block.arrival != Arrival::kMissing &&
      !BATON_MUTANT("duplicate_frame_accepted")) {
    if (block.sequence == frame.sequence) return absl::Span<std::byte>();
    return absl::InvalidArgumentError(
        StrCat("ordinal: got ", frame.ordinal, " in frames ", block.sequence,
               " and ", frame.sequence, ", allowed once"));
  }
  block = {Arrival::kPosted, frame.sequence};
  ++posted_;
  const uint32_t ordinal = BATON_MUTANT("wrong_ordinal") ? 0 : frame.ordinal;
  return absl::Span<std::byte>(spec_.memory[ordinal], payload_bytes);
}

absl::StatusOr<absl::Span<std::byte>> Landing::PostSeal(const SealMark& seal,
                                                        size_t payload_bytes) {
  BATON_CHECK(state_ == LandingState::kReceiving);
  if (seal_posted_) return absl::Span<std::byte>();
  if (seal.frames != expected()) {
    return absl::FailedPreconditionError(
        StrCat("seal: after ", seal.frames, " frames, allowed ", expected()));
  }
  if (payload_bytes > kMaxSealBytes) {
    return absl::InvalidArgumentError(
        StrCat("seal: got ", payload_bytes, " bytes, allowed ", kMaxSealBytes));
  }
  seal_posted_ = true;
  if (payload_bytes == 0) {
    seal_.emplace();
    return absl::Span<std::byte>();
  }
  seal_bytes_.resize(payload_bytes);
  ++posted_;
  return absl::Span<std::byte>(reinterpret_cast<std::byte*>(seal_bytes_.data()),
                               payload_bytes);
}

void Landing::FrameVerified(const Frame& frame, size_t payload_bytes) {
  BATON_CHECK(blocks_[frame.ordinal].arrival == Arrival::kPosted);
  blocks_[frame.ordinal].arrival = Arrival::kVerified;
  ++verified_;
  bytes_ += payload_bytes;
}

absl::Status Landing::SealVerified() {
  SealContents contents;
  if (!contents.ParseFromString(seal_bytes_)) {
    return absl::InvalidArgumentError("seal: not a SealContents message");
  }
  seal_ = std::move(contents);
  seal_bytes_.clear();
  return absl::OkStatus();
}

bool Landing::TryVerify() {
  if (state_ != LandingState::kReceiving || !seal_) return false;
  if ((verified_ != expected() || posted_ != 0) &&
      !BATON_MUTANT("verified_too_early")) {
    return false;
  }
  state_ = LandingState::kVerified;
  return true;
}

void Landing::GiveUp() {
  BATON_CHECK(state_ == LandingState::kReceiving);
  state_ = LandingState::kQuarantine;
}

}  // namespace baton::transfer
