#include "decode_worker/speculation/ngram_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decode_worker/speculation/drafter_harness.h"

namespace baton::decode {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<DraftToken> Propose(const std::vector<TokenId>& text, size_t most) {
  return ProposeAfter<NgramDrafter>(text, most);
}

TEST(NgramDrafterTest, NothingRepeatsNothingIsGuessed) {
  EXPECT_THAT(Propose({}, 4), IsEmpty());
  EXPECT_THAT(Propose({1}, 4), IsEmpty());
  EXPECT_THAT(Propose({1, 2, 3, 4}, 4), IsEmpty());
}

TEST(NgramDrafterTest, GoesOnAsTheTextDidBefore) {
  const auto draft = Propose({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 3);
  EXPECT_THAT(Tokens(draft), ElementsAre(4, 5, 6));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(draft[i].evidence.index(), Evidence(3 + i, false, true).index());
  }
  EXPECT_THAT(Propose({1, 2, 3, 4, 9, 1, 2, 3}, 0), IsEmpty());
}

TEST(NgramDrafterTest, TheLongestMatchWins) {
  // "2 3" occurs last before 7, "1 2 3" before 4.
  EXPECT_THAT(Tokens(Propose({1, 2, 3, 4, 8, 2, 3, 7, 1, 2, 3}, 1)),
              ElementsAre(4));
}

TEST(NgramDrafterTest, OfEqualMatchesTheNewestWins) {
  EXPECT_THAT(Tokens(Propose({5, 2, 3, 4, 6, 2, 3, 7, 8, 2, 3}, 1)),
              ElementsAre(7));
}

TEST(NgramDrafterTest, OneTokenIsAWeakMatch) {
  const auto draft = Propose({1, 2, 3, 9, 2}, 2);
  EXPECT_THAT(Tokens(draft), ElementsAre(3, 9));
  EXPECT_EQ(draft[0].evidence.index(), Evidence(1, false, true).index());
}

TEST(NgramDrafterTest, SaysWhatThePromptHadAlready) {
  const std::vector<TokenId> text = {1, 2, 3, 9, 1, 2};
  for (const auto& [prompt, quoted] :
       {std::pair{3, true}, std::pair{2, false}}) {
    const auto draft = ProposeAfter<NgramDrafter>(text, 1, prompt);
    EXPECT_THAT(Tokens(draft), ElementsAre(3));
    EXPECT_EQ(draft[0].evidence.quoted(), quoted) << prompt;
  }
}

TEST(NgramDrafterTest, APeriodGoesOn) {
  EXPECT_THAT(Tokens(Propose({7, 1, 2, 3, 1, 2, 3}, 8)),
              ElementsAre(1, 2, 3, 1, 2, 3, 1, 2));
  EXPECT_THAT(Tokens(Propose({4, 4}, 3)), ElementsAre(4, 4, 4));
}

TEST(NgramDrafterTest, LooksAtBoundedManyOccurrences) {
  std::vector<TokenId> text = {1, 2, 3, 4};
  for (int i = 0; i < NgramDrafter::kOccurrences; ++i) {
    text.insert(text.end(), {9, 2, 3, 5});
  }
  text.insert(text.end(), {1, 2, 3});
  EXPECT_THAT(Tokens(Propose(text, 1)), ElementsAre(5));
}

}  // namespace
}  // namespace baton::decode
