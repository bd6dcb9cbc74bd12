#include "decode_worker/speculation/ngram_drafter.h"

#include <algorithm>
#include <utility>

namespace baton::decode {

uint64_t NgramDrafter::LastPair() const {
  return uint64_t{tokens_[tokens_.size() - 2]} << 32 | tokens_.back();
}

void NgramDrafter::Append(TokenId token) {
  tokens_.push_back(token);
  const auto end = static_cast<uint32_t>(tokens_.size());
  single_ = std::exchange(singles_[token], end);
  previous_.push_back(end < 2 ? 0 : std::exchange(pairs_[LastPair()], end));
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
    draft->push_back({token, Evidence(match.length + i, /*split=*/false)});
  }
}

}  // namespace baton::decode
