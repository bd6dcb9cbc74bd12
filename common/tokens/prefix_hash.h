#ifndef BATON_COMMON_TOKENS_PREFIX_HASH_H_
#define BATON_COMMON_TOKENS_PREFIX_HASH_H_

#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/sha256.h"
#include "common/tokens/token.h"

namespace baton {

// Names a prompt prefix of whole blocks across the cluster: equal hashes mean
// equal tokens, tenant and fingerprint, so that KV may be exchanged. Hashable
// with absl containers.
struct PrefixHash {
  Sha256Digest digest{};

  friend auto operator<=>(const PrefixHash&, const PrefixHash&) = default;
  template <class H>
  friend H AbslHashValue(H h, const PrefixHash& hash) {
    return H::combine_contiguous(std::move(h), hash.digest.data(),
                                 hash.digest.size());
  }
};

// Parent of the first block: SHA-256 over "baton.prefix.v1", tenant salt and
// fingerprint, each with its length in front. Tenants with different salts
// never share a hash.
PrefixHash PrefixSeed(std::string_view tenant_salt,
                      std::string_view fingerprint);

// SHA-256 over the parent's 32 bytes and the block's token ids, 32 bits each,
// least significant byte first. Requires tokens.size() == kBlockTokens.
PrefixHash ExtendPrefix(const PrefixHash& parent,
                        absl::Span<const TokenId> tokens);

// Hashes of all whole blocks of `tokens`, first block first; a partial last
// block has none.
std::vector<PrefixHash> HashPrefixes(const PrefixHash& seed,
                                     absl::Span<const TokenId> tokens);

}  // namespace baton

#endif  // BATON_COMMON_TOKENS_PREFIX_HASH_H_
