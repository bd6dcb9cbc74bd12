#ifndef BATON_COMMON_TOKENS_TOKEN_H_
#define BATON_COMMON_TOKENS_TOKEN_H_

#include <cstdint>

namespace baton {

// Index into the model's vocabulary; always below the vocabulary size once a
// boundary has checked it.
using TokenId = uint32_t;

// Consecutive token positions in one KV block. Part of the fingerprint.
inline constexpr int kBlockTokens = 16;

// Blocks that `tokens` positions occupy.
constexpr uint32_t BlocksFor(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

}  // namespace baton

#endif  // BATON_COMMON_TOKENS_TOKEN_H_
