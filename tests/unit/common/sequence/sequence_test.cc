#include "common/sequence/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr TokenId kEnd = 0;
constexpr TokenId kOtherEnd = 1;
constexpr TokenId kMarker = 2;  // special, but ends nothing

// Tokens 3.. are these bytes.
const std::vector<std::string> kPieces = {
    "", "", "", "a", "b", "ab", "\xf0\x9f", "\x98\x80", "\xff", "S", "TOP"};

std::shared_ptr<const Vocabulary> ToyVocabulary() {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->size = kPieces.size();
  vocabulary->end_of_generation = {kEnd, kOtherEnd};
  vocabulary->bytes = [](TokenId token, bool skip_special) -> std::string_view {
    if (token <= kMarker) return skip_special ? "" : "<special>";
    return kPieces[token];
  };
  return vocabulary;
}

SequenceParams DefaultParams() {
  SequenceParams params;
  params.prompt = {5, 5, 3};
  params.max_tokens = 8;
  return params;
}

Sequence Make(SequenceParams params, std::vector<TokenId> generated = {}) {
  return Sequence(std::make_shared<SequenceParams>(std::move(params)),
                  ToyVocabulary(), 1, generated);
}

TEST(SequenceTest, GrowsUntilMaxTokens) {
  SequenceParams params = DefaultParams();
  params.max_tokens = 2;
  Sequence sequence = Make(params);
  EXPECT_EQ(sequence.length(), 3u);
  Sequence::Appended first = sequence.Append(3);
  EXPECT_EQ(first.index, 0u);
  EXPECT_EQ(first.text, "a");
  EXPECT_FALSE(first.finish.has_value());
  Sequence::Appended second = sequence.Append(6);
  EXPECT_EQ(second.index, 1u);
  EXPECT_EQ(second.text, "\xef\xbf\xbd");
  ASSERT_TRUE(second.finish.has_value());
  EXPECT_EQ(second.finish->kind, FinishKind::kLength);
  EXPECT_TRUE(sequence.finished());
  EXPECT_EQ(sequence.length(), 5u);
  EXPECT_EQ(sequence.TokenAt(2), 3u);
  EXPECT_EQ(sequence.TokenAt(4), 6u);
  EXPECT_THAT(sequence.generated(), ElementsAre(3, 6));
}

TEST(SequenceTest, EndTokensEndWithoutText) {
  for (const TokenId end : {kEnd, kOtherEnd}) {
    SequenceParams params = DefaultParams();
    params.skip_special_tokens = false;
    params.stop_strings = {"STOP"};
    Sequence sequence = Make(params);
    EXPECT_EQ(sequence.Append(9).text, "");
    const Sequence::Appended last = sequence.Append(end);
    EXPECT_EQ(last.text, "S");
    ASSERT_TRUE(last.finish.has_value());
    EXPECT_EQ(last.finish->kind, FinishKind::kStop);
    EXPECT_EQ(last.finish->stop_token, end);
    EXPECT_FALSE(last.finish->stop_string.has_value());
  }
}

TEST(SequenceTest, IgnoreEosGoesOnButStopIdsStillStop) {
  SequenceParams params = DefaultParams();
  params.ignore_eos = true;
  params.stop_token_ids = {4, kOtherEnd};
  Sequence sequence = Make(params);
  EXPECT_FALSE(sequence.Append(kEnd).finish.has_value());
  const Sequence::Appended last = sequence.Append(kOtherEnd);
  ASSERT_TRUE(last.finish.has_value());
  EXPECT_EQ(last.finish->stop_token, kOtherEnd);
}

TEST(SequenceTest, SpecialTokensAreShownOnRequest) {
  SequenceParams params = DefaultParams();
  EXPECT_EQ(Make(params).Append(kMarker).text, "");
  params.skip_special_tokens = false;
  EXPECT_EQ(Make(params).Append(kMarker).text, "<special>");
}

TEST(SequenceTest, StopStringsEndAndAreNamed) {
  SequenceParams params = DefaultParams();
  params.stop_strings = {"STOP"};
  Sequence sequence = Make(params);
  EXPECT_EQ(sequence.Append(3).text, "a");
  EXPECT_EQ(sequence.Append(9).text, "");
  const Sequence::Appended last = sequence.Append(10);
  EXPECT_EQ(last.text, "");
  ASSERT_TRUE(last.finish.has_value());
  EXPECT_EQ(last.finish->kind, FinishKind::kStop);
  EXPECT_EQ(last.finish->stop_string, "STOP");
}

TEST(SequenceTest, StopStringBeatsMaxTokens) {
  SequenceParams params = DefaultParams();
  params.max_tokens = 1;
  params.stop_strings = {"b"};
  const Sequence::Appended only = Make(params).Append(5);
  EXPECT_EQ(only.text, "a");
  EXPECT_EQ(only.finish->kind, FinishKind::kStop);
}

TEST(SequenceTest, MinTokensBansEveryEnd) {
  SequenceParams params = DefaultParams();
  params.min_tokens = 2;
  params.stop_token_ids = {4};
  params.stop_strings = {"ab"};
  Sequence sequence = Make(params);
  EXPECT_THAT(sequence.NextDraw().banned,
              UnorderedElementsAre(kEnd, kOtherEnd, 4));
  EXPECT_FALSE(sequence.Append(5).finish.has_value());
  EXPECT_THAT(sequence.NextDraw().banned,
              UnorderedElementsAre(kEnd, kOtherEnd, 4));
  EXPECT_FALSE(sequence.Append(kEnd).finish.has_value());
  EXPECT_THAT(sequence.NextDraw().banned, IsEmpty());
  EXPECT_TRUE(sequence.Append(5).finish.has_value());
}

TEST(SequenceTest, IgnoredEosIsNotBanned) {
  SequenceParams params = DefaultParams();
  params.min_tokens = 2;
  params.ignore_eos = true;
  params.stop_token_ids = {4};
  EXPECT_THAT(Make(params).NextDraw().banned, ElementsAre(4));
}

TEST(SequenceTest, DrawContextNamesChoiceAndAbsolutePosition) {
  Sequence sequence = Make(DefaultParams(), {3, 4});
  EXPECT_EQ(sequence.NextDraw().choice, 1u);
  EXPECT_EQ(sequence.NextDraw().position, 5u);
  EXPECT_EQ(sequence.counts().OutputCount(3), 1u);
  EXPECT_EQ(sequence.counts().OutputCount(5), 0u);
  EXPECT_TRUE(sequence.counts().Seen(5));
}

TEST(SequenceTest, EndedBeforeItBegan) {
  EXPECT_TRUE(Make(DefaultParams(), {3, kEnd, 4}).finished());
  SequenceParams params = DefaultParams();
  params.max_tokens = 2;
  EXPECT_TRUE(Make(params, {3, 4, 5}).finished());
  EXPECT_EQ(Make(params, {3, 4, 5}).generated().size(), 2u);
}

std::string Show(const Sequence::Appended& appended) {
  std::string shown = std::to_string(appended.index) + ":" + appended.text;
  if (!appended.finish.has_value()) return shown;
  shown += appended.finish->kind == FinishKind::kStop ? " stop" : " length";
  if (appended.finish->stop_string) shown += *appended.finish->stop_string;
  if (appended.finish->stop_token) {
    shown += std::to_string(*appended.finish->stop_token);
  }
  return shown;
}

// A replay continues exactly where the first attempt was.
TEST(SequenceTest, ConstructedFromAnyPointEqualsAppended) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    SequenceParams params = DefaultParams();
    params.max_tokens = 1 + random() % 20;
    params.min_tokens = random() % 6;
    params.ignore_eos = random() % 2 == 0;
    if (random() % 2 == 0) params.stop_strings = {"STOP", "bb", "ba\xf0\x9f"};
    if (random() % 3 == 0) params.stop_token_ids = {7};
    const auto shared = std::make_shared<SequenceParams>(params);
    Sequence whole(shared, ToyVocabulary(), 0, {});
    std::vector<TokenId> tokens;
    while (!whole.finished()) {
      const TokenId token =
          random() % 12 == 0
              ? static_cast<TokenId>(random() % 3)
              : static_cast<TokenId>(3 + random() % (kPieces.size() - 3));
      std::vector<Sequence> replays;
      for (int i = 0; i < 2; ++i) {
        replays.emplace_back(shared, ToyVocabulary(), 0, tokens);
      }
      const std::string shown = Show(whole.Append(token));
      tokens.push_back(token);
      for (Sequence& replay : replays) {
        ASSERT_EQ(replay.generated().size() + 1, tokens.size());
        ASSERT_EQ(Show(replay.Append(token)), shown);
        ASSERT_EQ(replay.finished(), whole.finished());
        ASSERT_EQ(replay.counts().counts(), whole.counts().counts());
        ASSERT_EQ(replay.NextDraw().position, whole.NextDraw().position);
        ASSERT_EQ(replay.NextDraw().banned, whole.NextDraw().banned);
      }
    }
  }
}

}  // namespace
}  // namespace baton
