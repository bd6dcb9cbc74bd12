#include "router/chat_template/python_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::router {
namespace {

using ::testing::ElementsAre;

TEST(PythonTextTest, StripTakesUnicodeSpace) {
  EXPECT_EQ(StripLeft(" \t\n\u00a0\u3000x "), "x ");
  EXPECT_EQ(StripRight(" x\u2003\x1c \u0085"), " x");
  EXPECT_EQ(StripRight("\u3000 "), "");
  EXPECT_EQ(StripRight("\u200b"), "\u200b");
  EXPECT_EQ(StripRight("x\x80"), "x\x80");
  EXPECT_EQ(StripLeft(""), "");
}

TEST(PythonTextTest, CharactersAreCodePoints) {
  EXPECT_EQ(CharacterCount("a\u4f60\U0001f600"), 3u);
  EXPECT_THAT(CharacterOffsets("a\u4f60b"), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(CharacterOffsets(""), ElementsAre(0));
  EXPECT_EQ(CharacterCount("\xff\xe4\xbd"), 2u);
}

TEST(PythonTextTest, FindText) {
  EXPECT_EQ(FindText("abcabc", "bc"), 1u);
  EXPECT_EQ(FindText("abcabc", "bc", 2), 4u);
  EXPECT_EQ(FindText("abc", "x"), std::string_view::npos);
  EXPECT_EQ(FindText("abc", "", 3), 3u);
  EXPECT_EQ(FindText("abc", "", 4), std::string_view::npos);
  EXPECT_EQ(FindText("", "a"), std::string_view::npos);
}

TEST(PythonTextTest, CaseMappingKeepsMarks) {
  MarkedText text("a\u00e9");
  text.Append(MarkedText("b\u00fc", true));
  const MarkedText upper = UpperCase(text);
  EXPECT_EQ(upper.text(), "A\u00c9B\u00dc");
  EXPECT_FALSE(upper.FromUser(2));
  EXPECT_TRUE(upper.FromUser(3));
  EXPECT_EQ(LowerCase(upper).text(), text.text());
  EXPECT_EQ(TitleCase(MarkedText("hELLO wORLD it's")).text(),
            "Hello World It'S");
  EXPECT_EQ(Capitalized(MarkedText("hELLO wORLD")).text(), "Hello world");
  EXPECT_EQ(UpperCase(MarkedText("a\xff"
                                 "b"))
                .text(),
            "A\xff"
            "B");
}

}  // namespace
}  // namespace baton::router
