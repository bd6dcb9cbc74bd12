#include "common/tokenizer/byte_pair_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace baton {
namespace {

using ::testing::ElementsAre;

std::vector<TokenId> Encode(const BytePairMerger& merger,
                            std::string_view word) {
  std::vector<TokenId> tokens;
  merger.Encode(word, &tokens);
  return tokens;
}

TEST(BytePairMergerTest, LowestRankFirstThenLeftmost) {
  BytePairMerger merger;
  merger.SetByteToken('a', 1);
  merger.SetByteToken('b', 2);
  merger.AddMerge(1, 2, 1, 10);    // ab
  merger.AddMerge(2, 1, 0, 11);    // ba
  merger.AddMerge(10, 11, 2, 12);  // ab ba
  merger.AddMerge(1, 1, 3, 13);    // aa
  EXPECT_THAT(Encode(merger, "ab"), ElementsAre(10));
  EXPECT_THAT(Encode(merger, "aba"), ElementsAre(1, 11));
  EXPECT_THAT(Encode(merger, "abba"), ElementsAre(12));
  EXPECT_THAT(Encode(merger, "aaa"), ElementsAre(13, 1));
  EXPECT_THAT(Encode(merger, ""), ElementsAre());
}

TEST(BytePairMergerTest, UnknownBytesVanishBeforeMerging) {
  BytePairMerger merger;
  merger.SetByteToken('a', 1);
  merger.AddMerge(1, 1, 0, 2);
  EXPECT_THAT(Encode(merger,
                     "a\x04"
                     "a"),
              ElementsAre(2));
  EXPECT_THAT(Encode(merger, "\x04\x05"), ElementsAre());
}

TEST(BytePairMergerTest, FirstOfEqualMergesCounts) {
  BytePairMerger merger;
  merger.SetByteToken('a', 1);
  merger.AddMerge(1, 1, 0, 2);
  merger.AddMerge(1, 1, 1, 3);
  EXPECT_THAT(Encode(merger, "aa"), ElementsAre(2));
}

struct RandomMerges {
  BytePairMerger merger;
  std::map<std::pair<TokenId, TokenId>, std::pair<uint32_t, TokenId>> merges;

  explicit RandomMerges(std::mt19937& random) {
    TokenId next = 0;
    for (const char byte : {'a', 'b', 'c'}) {
      merger.SetByteToken(static_cast<uint8_t>(byte), next++);
    }
    for (uint32_t rank = 0; rank < 12; ++rank, ++next) {
      const TokenId left = random() % next;
      const TokenId right = random() % next;
      merger.AddMerge(left, right, rank, next);
      merges.try_emplace({left, right}, rank, next);
    }
  }

  std::vector<TokenId> Naive(std::string_view word) const {
    std::vector<TokenId> tokens;
    for (const char byte : word) tokens.push_back(byte - 'a');
    while (true) {
      size_t best = tokens.size();
      std::pair<uint32_t, TokenId> chosen{~0u, 0};
      for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto it = merges.find({tokens[i], tokens[i + 1]});
        if (it != merges.end() && it->second.first < chosen.first) {
          best = i;
          chosen = it->second;
        }
      }
      if (best == tokens.size()) return tokens;
      tokens[best] = chosen.second;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }
};

TEST(BytePairMergerTest, EqualsTheNaiveAlgorithm) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    const RandomMerges merges(random);
    for (int i = 0; i < 10; ++i) {
      std::string word(1 + random() % 30, 'a');
      for (char& byte : word) byte = static_cast<char>('a' + random() % 3);
      ASSERT_EQ(Encode(merges.merger, word), merges.Naive(word)) << word;
    }
  }
}

// Quadratic time would not end here.
TEST(BytePairMergerTest, AMillionBytesInOneWord) {
  BytePairMerger merger;
  merger.SetByteToken('a', 0);
  for (uint32_t i = 0; i < 10; ++i) merger.AddMerge(i, i, i, i + 1);
  EXPECT_THAT(Encode(merger, std::string(1 << 20, 'a')),
              testing::SizeIs(1 << 10));
}

}  // namespace
}  // namespace baton
