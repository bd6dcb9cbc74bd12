#include "router/chat_template/string_literal.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

std::string Decoded(std::string_view source) {
  std::string decoded;
  return DecodeStringLiteral(source, &decoded) ? decoded : "bad";
}

TEST(StringLiteralTest, Escapes) {
  EXPECT_EQ(Decoded("plain \u4f60"), "plain \u4f60");
  EXPECT_EQ(Decoded(R"(a\n\t\r\\\'\"\a\b\f\v)"), "a\n\t\r\\'\"\a\b\f\v");
  EXPECT_EQ(Decoded(R"(\x41\u00e9\U0001F600)"), "A\u00e9\U0001f600");
  EXPECT_EQ(Decoded(R"(\101\60z\0)"), std::string("A0z\0", 4));
  EXPECT_EQ(Decoded("a\\\nb"), "ab");
  EXPECT_EQ(Decoded(R"(\q\d)"), R"(\q\d)");
}

TEST(StringLiteralTest, WhatIsNoCharacterIsRefused) {
  for (const char* source : {R"(\x4)", R"(\xg0)", R"(\u12)", R"(\U0001)",
                             R"(\ud800)", R"(\U00110000)", R"(\u)"}) {
    EXPECT_EQ(Decoded(source), "bad") << source;
  }
}

}  // namespace
}  // namespace baton::router
