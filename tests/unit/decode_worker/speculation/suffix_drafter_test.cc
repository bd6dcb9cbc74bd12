#include "decode_worker/speculation/suffix_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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
    EXPECT_EQ(draft[i].evidence.index(), Evidence(3 + i, false, true).index());
  }
}

TEST(SuffixDrafterTest, TheMostFrequentContinuationWins) {
  const auto draft = Propose({2, 3, 4, 8, 2, 3, 7, 1, 2, 3, 4, 9, 6, 2, 3}, 1);
  EXPECT_THAT(Tokens(draft), ElementsAre(4));
  EXPECT_EQ(draft[0].evidence.index(), Evidence(2, true, true).index());
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
    SuffixDrafter drafter(30);
    drafter.Reserve(60);
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

TEST(SuffixDrafterTest, SaysWhatThePromptHadAlready) {
  const std::vector<TokenId> text = {1, 2, 3, 4, 9, 1, 2, 3, 8, 2, 3, 7, 1, 2};
  for (const auto& [prompt, quoted] :
       {std::pair{3, true}, std::pair{2, false}}) {
    const auto draft = ProposeAfter<SuffixDrafter>(text, 1, prompt);
    EXPECT_THAT(Tokens(draft), ElementsAre(3));
    EXPECT_EQ(draft[0].evidence.quoted(), quoted) << prompt;
  }
}

// States, edges and their table never outgrow what was reserved.
TEST(SuffixDrafterTest, MemoryIsKnownBeforehand) {
  std::mt19937 random(4);
  for (const uint32_t letters : {1, 2, 3, 50, 100000}) {
    for (const bool worst : {false, true}) {
      SuffixDrafter drafter(0);
      drafter.Reserve(2000);
      const size_t reserved = drafter.BytesReserved();
      EXPECT_LE(reserved, drafter.BytesFor(2000));
      for (int i = 0; i < 2000; ++i) {
        // a b b b ... has most states, a b b ... b c most edges.
        drafter.Append(worst ? (i == 0      ? 1
                                : i == 1999 ? 3
                                            : 2)
                             : random() % letters);
      }
      EXPECT_EQ(drafter.BytesReserved(), reserved);
    }
  }
}

TEST(SuffixDrafterTest, OneTokenOverAndOverIsNoTrouble) {
  std::vector<TokenId> text(20000, 5);
  EXPECT_THAT(Tokens(Propose(text, 3)), ElementsAre(5, 5, 5));
}

}  // namespace
}  // namespace baton::decode
