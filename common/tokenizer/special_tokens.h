#ifndef BATON_COMMON_TOKENIZER_SPECIAL_TOKENS_H_
#define BATON_COMMON_TOKENIZER_SPECIAL_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tokens/token.h"

namespace baton {

// Finds the strings of special tokens in text. Immutable once filled,
// thread-safe.
class SpecialTokens {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    TokenId token = 0;
  };

  SpecialTokens() : nodes_(1) {}

  // Ignores an empty string; the first token of equal strings counts.
  void Add(std::string_view text, TokenId token);

  // The leftmost match at or after `from`, the longest one there; nullopt when
  // none is left. Linear for texts that are not made of near misses, at worst
  // the longest string times the text.
  std::optional<Match> Next(std::string_view text, size_t from) const;

 private:
  static constexpr TokenId kNoToken = ~TokenId{0};

  struct Node {
    std::vector<std::pair<char, uint32_t>> children;
    TokenId token = kNoToken;
  };

  const Node* Child(const Node& node, char next) const;

  std::vector<Node> nodes_;
};

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_SPECIAL_TOKENS_H_
