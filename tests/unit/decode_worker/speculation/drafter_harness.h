#ifndef BATON_TESTS_UNIT_DECODE_WORKER_SPECULATION_DRAFTER_HARNESS_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_SPECULATION_DRAFTER_HARNESS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/tokens/token.h"
#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

// What a new drafter of that kind guesses after `text`, of which so many tokens
// are the prompt.
template <class DrafterKind>
std::vector<DraftToken> ProposeAfter(const std::vector<TokenId>& text,
                                     size_t most, size_t prompt = 1000) {
  DrafterKind drafter(prompt);
  // Growing on the way changes nothing.
  drafter.Reserve(std::max<size_t>(1, text.size() / 2));
  size_t read = 0;
  for (const TokenId token : text) {
    if (read++ == text.size() / 2) drafter.Reserve(text.size());
    drafter.Append(token);
  }
  std::vector<DraftToken> draft;
  drafter.Propose(most, &draft);
  return draft;
}

inline std::vector<TokenId> Tokens(const std::vector<DraftToken>& draft) {
  std::vector<TokenId> tokens;
  for (const DraftToken& guess : draft) tokens.push_back(guess.token);
  return tokens;
}

}  // namespace baton::decode

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_SPECULATION_DRAFTER_HARNESS_H_
