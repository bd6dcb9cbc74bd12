#include "common/sequence/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "common/base/utf8.h"

namespace baton {
namespace {

const std::string kReplacement(kReplacementCharacter);

std::string Text(TextStream& stream, std::string_view bytes) {
  const TextStream::Output output = stream.Append(bytes);
  EXPECT_FALSE(output.stop.has_value());
  return output.text;
}

TEST(TextStreamTest, HoldsCodePointsBackUntilWhole) {
  TextStream stream({});
  EXPECT_EQ(Text(stream, "a\xf0"), "a");
  EXPECT_EQ(Text(stream, "\x9f\x98"), "");
  EXPECT_EQ(Text(stream,
                 "\x80"
                 "b"),
            "\xf0\x9f\x98\x80"
            "b");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(TextStreamTest, ReplacesWhatCannotBecomeACodePoint) {
  TextStream stream({});
  EXPECT_EQ(Text(stream, "\xe4\xbd"), "");
  EXPECT_EQ(Text(stream, "x"), kReplacement + "x");
  EXPECT_EQ(Text(stream, "\xff"), kReplacement);
  EXPECT_EQ(Text(stream, "\xf0\x9f"), "");
  EXPECT_EQ(stream.Finish(), kReplacement);
  EXPECT_EQ(stream.Finish(), "");
}

TEST(TextStreamTest, StopAcrossTokensNeverLeaks) {
  TextStream stream({"</s>"});
  EXPECT_EQ(Text(stream, "x<"), "x");
  EXPECT_EQ(Text(stream, "/"), "");
  EXPECT_EQ(Text(stream, "b<"), "</b");
  EXPECT_EQ(Text(stream, "/s"), "");
  const TextStream::Output output = stream.Append("> more");
  EXPECT_EQ(output.text, "");
  EXPECT_EQ(output.stop, "</s>");
}

TEST(TextStreamTest, FinishGivesWhatWasHeld) {
  TextStream stream({"STOP"});
  EXPECT_EQ(Text(stream, "go ST"), "go ");
  EXPECT_EQ(stream.Finish(), "ST");
}

TEST(TextStreamTest, OverlappingStartsAreKept) {
  TextStream stream({"aab"});
  EXPECT_EQ(Text(stream, "aa"), "");
  EXPECT_EQ(Text(stream, "a"), "a");
  const TextStream::Output output = stream.Append("b");
  EXPECT_EQ(output.text, "");
  EXPECT_EQ(output.stop, "aab");
}

TEST(TextStreamTest, EarliestThenLongestStopWins) {
  TextStream stream({"cd", "bc", "bcd", "b?"});
  const TextStream::Output output = stream.Append("abcde");
  EXPECT_EQ(output.text, "a");
  EXPECT_EQ(output.stop, "bcd");
}

TEST(TextStreamTest, AnEarlierStartMayEndLater) {
  TextStream stream({"c", "bcd"});
  const TextStream::Output output = stream.Append("abcd");
  EXPECT_EQ(output.text, "a");
  EXPECT_EQ(output.stop, "bcd");
}

TEST(TextStreamTest, StopsOfManyBytesPerCodePoint) {
  TextStream stream({"\xe4\xbd\xa0\xe5\xa5\xbd"});
  EXPECT_EQ(Text(stream, "x\xe4\xbd\xa0\xe5"), "x");
  EXPECT_EQ(Text(stream, "\xa5"), "");
  const TextStream::Output output = stream.Append("\xbd");
  EXPECT_EQ(output.stop, "\xe4\xbd\xa0\xe5\xa5\xbd");
}

TEST(TextStreamTest, ReplacementsCanMatch) {
  TextStream stream({kReplacement});
  EXPECT_EQ(stream
                .Append("ab\xff"
                        "c")
                .text,
            "ab");
}

TEST(TextStreamTest, EmptyAndInvalidStopsNeverMatch) {
  TextStream stream({"", "\x80", "\xe4\xbd"});
  EXPECT_EQ(Text(stream, "a\xe4\xbd\xa0\x80"), "a\xe4\xbd\xa0" + kReplacement);
}

TEST(TextStreamTest, MayNotStop) {
  TextStream stream({"ab"});
  EXPECT_EQ(stream.Append("abxa", false).text, "abxa");
  EXPECT_EQ(Text(stream, "b"), "b");
  EXPECT_EQ(stream.Append("ab").stop, "ab");
}

// Whatever the cuts, the text is that of the whole up to the first stop.
TEST(TextStreamTest, CutsDoNotMatter) {
  std::mt19937 random(7);
  const std::vector<std::string> alphabet = {"a", "b", "\xc3\xa9", "\xff",
                                             "\xf0\x9f\x98\x80"};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (int i = 0; i < 24; ++i) bytes += alphabet[random() % 5];
    const std::string whole = ReplaceInvalidUtf8(bytes);
    // Stops of one length: no choice between overlapping ones.
    const std::vector<std::string> stops = {"abb", "bab", "b\xc3\xa9"};
    size_t end = std::string::npos;
    for (const std::string& stop : stops) end = std::min(end, whole.find(stop));
    TextStream stream(stops);
    std::string text;
    bool stopped = false;
    for (size_t at = 0; at < bytes.size() && !stopped;) {
      const size_t n = 1 + random() % 3;
      const TextStream::Output output =
          stream.Append(std::string_view(bytes).substr(at, n));
      ASSERT_FALSE(FindInvalidUtf8(output.text).has_value());
      text += output.text;
      stopped = output.stop.has_value();
      at += n;
    }
    if (!stopped) text += stream.Finish();
    ASSERT_EQ(stopped, end != std::string::npos) << round;
    ASSERT_EQ(text, whole.substr(0, end)) << round;
  }
}

TEST(TextStreamTest, LongRepetitiveStopsTakeLinearTime) {
  const std::string stop = std::string(50000, 'a') + "b";
  TextStream stream({stop});
  size_t sent = 0;
  for (int i = 0; i < 200000; ++i) sent += Text(stream, "a").size();
  EXPECT_EQ(sent, 150000u);
  EXPECT_EQ(stream.Append("b").stop, stop);
}

}  // namespace
}  // namespace baton
