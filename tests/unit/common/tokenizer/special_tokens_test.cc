#include "common/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

SpecialTokens Make() {
  SpecialTokens tokens;
  tokens.Add("<a>", 1);
  tokens.Add("<a>b", 2);
  tokens.Add("<c>", 3);
  tokens.Add("<a>", 9);
  tokens.Add("", 10);
  return tokens;
}

std::string Show(const SpecialTokens& tokens, std::string_view text,
                 size_t from = 0) {
  const auto match = tokens.Next(text, from);
  if (!match.has_value()) return "none";
  return std::to_string(match->begin) + "-" + std::to_string(match->end) + ":" +
         std::to_string(match->token);
}

TEST(SpecialTokensTest, LeftmostThenLongest) {
  const SpecialTokens tokens = Make();
  EXPECT_EQ(Show(tokens, "x<c><a>"), "1-4:3");
  EXPECT_EQ(Show(tokens, "<a>b<c>"), "0-4:2");
  EXPECT_EQ(Show(tokens, "<a>x"), "0-3:1");
  EXPECT_EQ(Show(tokens, "<<a>"), "1-4:1");
}

TEST(SpecialTokensTest, SearchStartsAtFrom) {
  const SpecialTokens tokens = Make();
  EXPECT_EQ(Show(tokens, "<a><c>", 1), "3-6:3");
  EXPECT_EQ(Show(tokens, "<a>", 3), "none");
  EXPECT_EQ(Show(tokens, "<a>", 99), "none");
}

TEST(SpecialTokensTest, NearMissesAreNone) {
  const SpecialTokens tokens = Make();
  EXPECT_EQ(Show(tokens, ""), "none");
  EXPECT_EQ(Show(tokens, "<a"), "none");
  EXPECT_EQ(Show(tokens, "<b><a"), "none");
  EXPECT_EQ(Show(SpecialTokens(), "<a>"), "none");
}

}  // namespace
}  // namespace baton
