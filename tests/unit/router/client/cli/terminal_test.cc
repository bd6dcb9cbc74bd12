#include "router/client/cli/terminal.h"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PrintableTest, KeepsTextAndDropsControls) {
  EXPECT_EQ(Printable("a\tb\nc \xc3\xa9 \xe2\x82\xac"),
            "a\tb\nc \xc3\xa9 \xe2\x82\xac");
  EXPECT_EQ(Printable("\x1b[31mred\x07\r\x7f"), "[31mred");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "2Jb"),
            "a2Jb");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

TEST(FormatTableTest, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(FormatTable({{"NAME", "N"}, {"a", "1,000"}, {"long", "7"}}),
            "NAME  N\n"
            "a     1,000\n"
            "long      7\n");
}

TEST(FormatTableTest, CountsCodePointsAndTakesRaggedRows) {
  EXPECT_EQ(FormatTable({{"\xc3\xa9\xc3\xa9", "x"}, {"abc"}}),
            "\xc3\xa9\xc3\xa9   x\nabc\n");
  EXPECT_EQ(FormatTable({}), "");
}

TEST(WithThousandsTest, GroupsDigits) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(12345678), "12,345,678");
}

TEST(ProgressBarTest, FillsWithTheShareDone) {
  EXPECT_EQ(ProgressBar(0, 4, seconds(0), 8), "[........]  0/4  0.0 s");
  EXPECT_EQ(ProgressBar(1, 4, milliseconds(1500), 8), "[##......]  1/4  1.5 s");
  EXPECT_EQ(ProgressBar(9, 4, seconds(2), 8), "[########]  9/4  2.0 s");
  EXPECT_EQ(ProgressBar(0, 0, seconds(0), 4), "[....]  0/0  0.0 s");
}

TEST(ProgressLineTest, PlainFilesGetFewWholeLines) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const MonotonicTime start{};
  {
    ProgressLine line(file);
    line.Show("one", start);
    line.Show("one", start + seconds(9));
    line.Show("two", start + seconds(10));
    line.Show("too soon", start + seconds(11));
    line.Show("three", start + seconds(20));
  }
  std::rewind(file);
  std::string text(100, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(text, "one\ntwo\nthree\n");
}

}  // namespace
}  // namespace baton::cli
