#include "decode_worker/speculation/suffix_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/decode_worker/speculation/drafter_harness.h"

namespace baton::decode {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<DraftToken> Propose(const std::vector<TokenId>& text, size_t most) {
  return ProposeAfter<SuffixDrafter>(text, most);
}

TEST(SuffixDrafterTest, NothingRepeatsNothingIsGuessed) {
  EXPECT_THAT(Propose({}, 4), IsEmpty());
  EXPECT_THAT(Propose({1}, 4), IsEmpty());
  EXPECT_THAT(Propose({1, 2, 3, 4}, 4), IsEmpty());
}

TEST(SuffixDrafterTest, GoesOnAsTheTextDidBefore) {
  const auto draft = Propose({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 3);
  EXPECT_THAT(Tokens(draft), ElementsAre(4, 5, 6));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(draft[i].evidence.index(), Evidence(3 + i, false).index());
  }
}

TEST(SuffixDrafterTest, TheMostFrequentContinuationWins) {
  const auto draft = Propose({2, 3, 4, 8, 2, 3, 7, 1, 2, 3, 4, 9, 6, 2, 3}, 1);
  EXPECT_THAT(Tokens(draft), ElementsAre(4));
  EXPECT_EQ(draft[0].evidence.index(), Evidence(2, true).index());
}

TEST(SuffixDrafterTest, TheLongestSuffixThatOccurredDecides) {
  EXPECT_THAT(Tokens(Propose({1, 2, 3, 4, 8, 2, 3, 7, 5, 2, 3, 7, 1, 2, 3}, 1)),
              ElementsAre(4));
}

TEST(SuffixDrafterTest, APeriodGoesOn) {
  EXPECT_THAT(Tokens(Propose({7, 1, 2, 3, 1, 2, 3}, 8)),
              ElementsAre(1, 2, 3, 1, 2, 3, 1, 2));
  EXPECT_THAT(Tokens(Propose({4, 4}, 3)), ElementsAre(4, 4, 4));
}

// Counts every occurrence of every suffix, the slow way.
std::vector<TokenId> NextTokens(const std::vector<TokenId>& text) {
  for (size_t length = text.size() - 1; length > 0; --length) {
    std::map<TokenId, int> counts;
    for (size_t end = length; end < text.size(); ++end) {
      if (std::equal(text.end() - static_cast<int>(length), text.end(),
                     text.begin() + static_cast<int>(end - length))) {
        ++counts[text[end]];
      }
    }
    if (counts.empty()) continue;
    int most = 0;
    for (const auto& [token, count] : counts) most = std::max(most, count);
    std::vector<TokenId> best;
    for (const auto& [token, count] : counts) {
      if (count == most) best.push_back(token);
    }
    return best;
  }
  return {};
}

TEST(SuffixDrafterTest, AgreesWithCountingOnRandomTexts) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint32_t letters = 2 + random() % 4;
    SuffixDrafter drafter;
    std::vector<TokenId> text;
    for (int i = 0; i < 60; ++i) {
      text.push_back(random() % letters);
      drafter.Append(text.back());
      std::vector<DraftToken> draft;
      drafter.Propose(1, &draft);
      const std::vector<TokenId> expected = NextTokens(text);
      ASSERT_EQ(draft.empty(), expected.empty());
      if (draft.empty()) continue;
      EXPECT_THAT(expected, testing::Contains(draft[0].token))
          << testing::PrintToString(text);
    }
  }
}

TEST(SuffixDrafterTest, OneTokenOverAndOverIsNoTrouble) {
  std::vector<TokenId> text(20000, 5);
  EXPECT_THAT(Tokens(Propose(text, 3)), ElementsAre(5, 5, 5));
}

}  // namespace
}  // namespace baton::decode
