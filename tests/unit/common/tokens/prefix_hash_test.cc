#include "common/tokens/prefix_hash.h"

#include <gtest/gtest.h>

#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"

namespace baton {
namespace {

std::string Hex(const PrefixHash& hash) {
  return absl::BytesToHexString(
      std::string(hash.digest.begin(), hash.digest.end()));
}

std::vector<TokenId> Consecutive(TokenId first, size_t n) {
  std::vector<TokenId> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Made with Python's hashlib from the formula in the header.
TEST(PrefixHashTest, KnownAnswers) {
  const PrefixHash seed = PrefixSeed("tenant", "\x01\x02");
  EXPECT_EQ(Hex(seed),
            "f0b5eaa67bd59b7da69de842b40890e917e0e7da2832745596ac0cba0c1f35a4");
  const PrefixHash first = ExtendPrefix(seed, Consecutive(0, 16));
  EXPECT_EQ(Hex(first),
            "b204dceee6f5647545d4e7e9c15f1057a9a80e3d198ca5bcf94462cc73668185");
  EXPECT_EQ(Hex(ExtendPrefix(first, Consecutive(49136, 16))),
            "fa7d7c1a206e752df373cf40ed03579e395b0864590254c46464aa0654b7c840");
}

TEST(PrefixHashTest, ChainsWholeBlocksOnly) {
  const PrefixHash seed = PrefixSeed("", "f");
  const std::vector<TokenId> tokens = Consecutive(0, 47);
  const std::vector<PrefixHash> hashes = HashPrefixes(seed, tokens);
  ASSERT_EQ(hashes.size(), 2u);
  const auto span = absl::MakeConstSpan(tokens);
  EXPECT_EQ(hashes[0], ExtendPrefix(seed, span.subspan(0, 16)));
  EXPECT_EQ(hashes[1], ExtendPrefix(hashes[0], span.subspan(16, 16)));
  EXPECT_TRUE(HashPrefixes(seed, span.first(15)).empty());
}

TEST(PrefixHashTest, EveryInputMatters) {
  const std::vector<TokenId> tokens = Consecutive(1000, 32);
  absl::flat_hash_set<PrefixHash> seen;
  const auto last = [&](std::string_view salt, std::string_view fingerprint,
                        std::vector<TokenId> ids) {
    return HashPrefixes(PrefixSeed(salt, fingerprint), ids).back();
  };
  EXPECT_TRUE(seen.insert(last("a", "bc", tokens)).second);
  EXPECT_FALSE(seen.insert(last("a", "bc", tokens)).second);
  EXPECT_TRUE(seen.insert(last("ab", "c", tokens)).second);
  EXPECT_TRUE(seen.insert(last("", "abc", tokens)).second);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<TokenId> changed = tokens;
    changed[i] ^= 1u << (i % 32);
    EXPECT_TRUE(seen.insert(last("a", "bc", changed)).second) << i;
  }
}

}  // namespace
}  // namespace baton
