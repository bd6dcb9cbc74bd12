#include "decode_worker/speculation/ngram_drafter.h"

#include <algorithm>

namespace baton::decode {

size_t NgramDrafter::BytesFor(size_t tokens) const {
  return tokens * (sizeof(TokenId) + sizeof(uint32_t)) +
         2 * IndexTable::BytesFor(tokens);
}

void NgramDrafter::Reserve(size_t tokens) {
  tokens_.reserve(tokens);
  previous_.reserve(tokens);
  pairs_.Reset(tokens);
  singles_.Reset(tokens);
  for (uint32_t end = 1; end <= tokens_.size(); ++end) {
    SlotOf(singles_, 1, end) = end;
    if (end >= 2) SlotOf(pairs_, 2, end) = end;
  }
}

uint32_t& NgramDrafter::SlotOf(IndexTable& table, uint32_t tokens,
                               uint32_t end) {
  uint64_t key = tokens_[end - 1];
  if (tokens == 2) key |= uint64_t{tokens_[end - 2]} << 32;
  return table.Find(IndexTable::Hash(key), [&](uint32_t other) {
    return std::equal(tokens_.begin() + (other - tokens),
                      tokens_.begin() + other,
                      tokens_.begin() + (end - tokens));
  });
}

void NgramDrafter::Append(TokenId token) {
  tokens_.push_back(token);
  const auto end = static_cast<uint32_t>(tokens_.size());
  const auto replace = [end](uint32_t& slot) {
    const uint32_t last = slot == IndexTable::kNone ? 0 : slot;
    slot = end;
    return last;
  };
  single_ = replace(SlotOf(singles_, 1, end));
  previous_.push_back(end < 2 ? 0 : replace(SlotOf(pairs_, 2, end)));
}

size_t NgramDrafter::MatchLength(uint32_t end) const {
  const size_t most = std::min<size_t>(end, kLongestMatch);
  size_t length = 0;
  while (length < most &&
         tokens_[end - 1 - length] == tokens_[tokens_.size() - 1 - length]) {
    ++length;
  }
  return length;
}

NgramDrafter::Match NgramDrafter::LongestMatch() const {
  if (tokens_.empty()) return {};
  Match longest{single_, single_ == 0 ? 0u : 1u};
  uint32_t end = previous_.back();
  for (int i = 0; end != 0 && i < kOccurrences; ++i) {
    const size_t length = MatchLength(end);
    if (length > longest.length) longest = {end, length};
    if (length == kLongestMatch) break;
    end = previous_[end - 1];
  }
  return longest;
}

void NgramDrafter::Propose(size_t most, std::vector<DraftToken>* draft) const {
  draft->clear();
  const Match match = LongestMatch();
  if (match.length == 0) return;
  for (size_t i = 0; i < most; ++i) {
    // A match that reaches the end of the text is a period of it.
    const size_t from = match.end + i;
    const TokenId token = from < tokens_.size()
                              ? tokens_[from]
                              : (*draft)[from - tokens_.size()].token;
    draft->push_back({token, Evidence(match.length + i, /*split=*/false,
                                      /*quoted=*/from < prompt_)});
  }
}

}  // namespace baton::decode
