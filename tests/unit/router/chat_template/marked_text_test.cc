#include "router/chat_template/marked_text.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

std::string Show(const MarkedText& text) {
  std::string shown;
  for (const RenderedPiece& piece : text.Pieces()) {
    shown += (piece.from_user ? "<" : "(") + piece.text +
             (piece.from_user ? ">" : ")");
  }
  return shown;
}

TEST(MarkedTextTest, AppendKeepsEveryOrigin) {
  MarkedText text("a");
  text.Append(MarkedText("bc", true));
  text.Append("d", false);
  text.Append("e", true);
  EXPECT_EQ(text.text(), "abcde");
  EXPECT_EQ(Show(text), "(a)<bc>(d)<e>");
  MarkedText user("x", true);
  user.Append(MarkedText("y"));
  user.Append(text);
  EXPECT_EQ(Show(user), "<x>(ya)<bc>(d)<e>");
  EXPECT_FALSE(user.FromUser(1));
  EXPECT_TRUE(user.FromUser(3));
}

TEST(MarkedTextTest, SubstringKeepsOrigins) {
  MarkedText text("ab");
  text.Append(MarkedText("cd", true));
  EXPECT_EQ(Show(text.Substring(1, 3)), "(b)<c>");
  EXPECT_EQ(Show(text.Substring(2, 2)), "");
  EXPECT_EQ(Show(text.Substring(0, 4)), "(ab)<cd>");
}

TEST(MarkedTextTest, EmptyPiecesVanish) {
  MarkedText text;
  text.Append(MarkedText("", true));
  text.Append("", true);
  text.Append("a", false);
  text.Append(MarkedText("b"));
  EXPECT_EQ(Show(text), "(ab)");
  EXPECT_TRUE(MarkedText().Pieces().empty());
}

}  // namespace
}  // namespace baton::router
