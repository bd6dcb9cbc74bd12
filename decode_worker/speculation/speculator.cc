#include "decode_worker/speculation/speculator.h"

#include <algorithm>
#include <utility>

namespace baton::decode {
namespace {

// Room for an answer to grow, besides a quarter of the text so far.
constexpr uint64_t kLeastGrowth = 256;

}  // namespace

Speculator::Speculator(std::shared_ptr<Drafting> drafting)
    : drafting_(std::move(drafting)), estimate_(&drafting_->prior) {}

uint64_t Speculator::Unread(const Sequence& sequence) {
  if (stopped_ || !MakeRoom(sequence, sequence.length())) return 0;
  return sequence.length() - fed_;
}

bool Speculator::MakeRoom(const Sequence& sequence, uint64_t tokens) {
  if (drafter_ != nullptr && tokens <= room_) return true;
  DrafterMemory& memory = drafting_->memory;
  if (refused_at_ > 0 && memory.held() >= refused_at_) return false;
  const uint64_t longest =
      sequence.params().prompt.size() + sequence.params().max_tokens;
  const uint64_t room = std::max(
      tokens, std::min(longest, tokens + std::max(kLeastGrowth, tokens / 4)));
  // One that is too small is not copied, which would be a pause of any length
  // between two steps and need the memory of both: it is read again.
  Drop();
  for (; kind_ < drafting_->drafters.size(); ++kind_, Drop()) {
    drafter_ = drafting_->drafters[kind_](sequence);
    const size_t bytes = drafter_->BytesFor(room);
    if (!memory.Take(bytes)) continue;
    drafter_->Reserve(room);
    bytes_ = bytes;
    room_ = room;
    refused_at_ = 0;
    return true;
  }
  // The smallest kind may fit when others have ended.
  kind_ = drafting_->drafters.size() - 1;
  refused_at_ = std::max<size_t>(memory.held(), 1);
  return false;
}

void Speculator::Drop() {
  drafter_.reset();
  drafting_->memory.Give(bytes_);
  bytes_ = 0;
  fed_ = room_ = 0;
}

void Speculator::Read(const Sequence& sequence, uint64_t tokens) {
  if (drafter_ == nullptr) return;
  const uint64_t end = std::min({sequence.length(), fed_ + tokens, room_});
  while (fed_ < end) drafter_->Append(sequence.TokenAt(fed_++));
}

absl::Span<const DraftToken> Speculator::Propose(const Sequence& sequence,
                                                 size_t most) {
  draft_.clear();
  acceptance_.clear();
  if (drafter_ == nullptr || fed_ < sequence.length()) return draft_;
  drafter_->Propose(most, &draft_);
  for (const DraftToken& guess : draft_) {
    acceptance_.push_back(estimate_.Trusted(guess.evidence));
  }
  return draft_;
}

void Speculator::Observe(absl::Span<const TokenId> tokens) {
  const size_t known = std::min(tokens.size(), draft_.size());
  for (size_t i = 0; i < known; ++i) {
    const bool right = draft_[i].token == tokens[i];
    estimate_.Observe(draft_[i].evidence, right);
    if (!right) break;
  }
  draft_.clear();
}

void Speculator::Pause() {
  Drop();
  kind_ = 0;
  refused_at_ = 0;
  draft_.clear();
  acceptance_.clear();
}

void Speculator::Stop() {
  Pause();
  stopped_ = true;
}

}  // namespace baton::decode
