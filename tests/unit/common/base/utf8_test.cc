#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Utf8Test, EveryScalarValueSurvivesTheRoundTrip) {
  for (uint32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
    if (code_point >= 0xd800 && code_point <= 0xdfff) continue;
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Prefix prefix = ScanUtf8(text);
    ASSERT_EQ(prefix.kind, Utf8Prefix::Kind::kCodePoint) << code_point;
    ASSERT_EQ(prefix.length, text.size()) << code_point;
    ASSERT_EQ(prefix.code_point, code_point);
  }
}

TEST(Utf8Test, FindsTheFirstBadByte) {
  const struct {
    std::string_view text;
    std::optional<size_t> at;
  } kCases[] = {
      {"", std::nullopt},
      {"plain", std::nullopt},
      {std::string_view("nul\0inside", 10), std::nullopt},
      {"\xe4\xbd\xa0\xf0\x9f\x98\x80", std::nullopt},
      {"seventeen bytes: \xff", 17},
      {"\x80", 0},
      {"a\xc3", 1},
      {"a\xc3(", 1},
      {"\xc0\xaf", 0},
      {"\xed\xa0\x80", 0},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"ab\xf0\x9f\x98", 2},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(FindInvalidUtf8(test.text), test.at) << test.text;
  }
}

TEST(Utf8Test, IncompleteMeansMoreBytesCouldHelp) {
  EXPECT_EQ(ScanUtf8("\xf0\x9f\x98").kind, Utf8Prefix::Kind::kIncomplete);
  EXPECT_EQ(ScanUtf8("\xf0\x9f\x98").length, 3u);
  EXPECT_EQ(ScanUtf8("\xf0\x9f"
                     "a")
                .kind,
            Utf8Prefix::Kind::kInvalid);
  EXPECT_EQ(ScanUtf8("\xf0\x9f"
                     "a")
                .length,
            2u);
  EXPECT_EQ(ScanUtf8("\xf0\x80").kind, Utf8Prefix::Kind::kInvalid);
  EXPECT_EQ(ScanUtf8("\xf0\x80").length, 1u);
}

// Expected values are Python's bytes.decode("utf8", "replace").
TEST(Utf8Test, ReplacesOnePerMaximalSubpart) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(ReplaceInvalidUtf8("\xf0\x9f\x98"), r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xe4\xbd"
                               "a"),
            r + "a");
  EXPECT_EQ(ReplaceInvalidUtf8("\xed\xa0\x80"), r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xf4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xc0\xaf"), r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xf8\x88\x80\x80\x80"), r + r + r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("a\xff"
                               "b\xc3"),
            "a" + r + "b" + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xe2\x28\xa1"), r + "(" + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xf0\x80\x80\x41"), r + r + r + "A");
}

}  // namespace
}  // namespace baton
