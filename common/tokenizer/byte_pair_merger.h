#ifndef BATON_COMMON_TOKENIZER_BYTE_PAIR_MERGER_H_
#define BATON_COMMON_TOKENIZER_BYTE_PAIR_MERGER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/tokens/token.h"

namespace baton {

// Byte-pair encoding of one word: starting from the tokens of its bytes, the
// adjacent pair of lowest rank (leftmost first) is replaced until none is left
// (Sennrich, Haddow, Birch, ACL 2016). Immutable once filled, thread-safe.
class BytePairMerger {
 public:
  void SetByteToken(uint8_t byte, TokenId token) { byte_tokens_[byte] = token; }
  // Of equal pairs the first counts.
  void AddMerge(TokenId left, TokenId right, uint32_t rank, TokenId merged);

  // Appends the word's tokens. Bytes without a token vanish before any merge,
  // as in Hugging Face's tokenizers without an unknown token. O(n log n).
  void Encode(std::string_view word, std::vector<TokenId>* tokens) const;

 private:
  struct Merge {
    uint32_t rank;
    TokenId token;
  };

  const Merge* Find(TokenId left, TokenId right) const;

  std::array<std::optional<TokenId>, 256> byte_tokens_;
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by left << 32 | right
};

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_BYTE_PAIR_MERGER_H_
