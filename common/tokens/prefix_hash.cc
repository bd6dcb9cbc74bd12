#include "common/tokens/prefix_hash.h"

#include "common/base/check.h"

namespace baton {

PrefixHash PrefixSeed(std::string_view tenant_salt,
                      std::string_view fingerprint) {
  return {Sha256()
              .UpdateField("baton.prefix.v1")
              .UpdateField(tenant_salt)
              .UpdateField(fingerprint)
              .Finish()};
}

PrefixHash ExtendPrefix(const PrefixHash& parent,
                        absl::Span<const TokenId> tokens) {
  BATON_CHECK(tokens.size() == kBlockTokens);
  std::array<std::byte, sizeof(parent.digest) + 4 * kBlockTokens> message;
  auto out = message.begin();
  for (const uint8_t byte : parent.digest) *out++ = std::byte{byte};
  for (const TokenId token : tokens) {
    for (int shift = 0; shift < 32; shift += 8) {
      *out++ = static_cast<std::byte>(token >> shift);
    }
  }
  return {Sha256Of(message)};
}

std::vector<PrefixHash> HashPrefixes(const PrefixHash& seed,
                                     absl::Span<const TokenId> tokens) {
  std::vector<PrefixHash> hashes;
  hashes.reserve(tokens.size() / kBlockTokens);
  const PrefixHash* parent = &seed;
  for (; tokens.size() >= kBlockTokens; tokens.remove_prefix(kBlockTokens)) {
    hashes.push_back(ExtendPrefix(*parent, tokens.first(kBlockTokens)));
    parent = &hashes.back();
  }
  return hashes;
}

}  // namespace baton
