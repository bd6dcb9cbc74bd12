#ifndef BATON_TESTS_UNIT_DECODE_WORKER_SPECULATION_DRAFTER_HARNESS_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_SPECULATION_DRAFTER_HARNESS_H_

#include <cstddef>
#include <vector>

#include "common/tokens/token.h"
#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

// What a new drafter of that kind guesses after `text`.
template <class DrafterKind>
std::vector<DraftToken> ProposeAfter(const std::vector<TokenId>& text,
                                     size_t most) {
  DrafterKind drafter;
  for (const TokenId token : text) drafter.Append(token);
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
