#include "common/config/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace baton {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

TEST(ByteSizeTest, ReadsBinaryDecimalAndPlainNumbers) {
  EXPECT_EQ(*ParseByteSize("4096"), 4096u);
  EXPECT_EQ(*ParseByteSize("0"), 0u);
  EXPECT_EQ(*ParseByteSize("7B"), 7u);
  EXPECT_EQ(*ParseByteSize("64KiB"), 65536u);
  EXPECT_EQ(*ParseByteSize("512MiB"), 512u << 20);
  EXPECT_EQ(*ParseByteSize("1.5GiB"), 3u << 29);
  EXPECT_EQ(*ParseByteSize("1TiB"), uint64_t{1} << 40);
  EXPECT_EQ(*ParseByteSize("10MB"), 10'000'000u);
}

TEST(ByteSizeTest, RefusesTheRest) {
  for (const char* text :
       {"", "MiB", "512 MiB", "512mib", "-1MiB", "+1", "1e3", "1..5MiB",
        "9999999999TiB", "99999999999999999999", "0x10", "nan", "1MiBB"}) {
    EXPECT_FALSE(ParseByteSize(text).ok()) << text;
  }
  EXPECT_EQ(ParseByteSize("lots").status().message(),
            "expected size like 512MiB (got \"lots\")");
}

TEST(ByteSizeTest, FormatsWithTheLargestExactUnit) {
  EXPECT_EQ(FormatByteSize(512u << 20), "512MiB");
  EXPECT_EQ(FormatByteSize(1536), "1536");
  EXPECT_EQ(FormatByteSize(0), "0");
  EXPECT_EQ(FormatByteSize(uint64_t{3} << 40), "3TiB");
}

TEST(DurationTest, ReadsEveryUnit) {
  EXPECT_EQ(*ParseDuration("30s"), seconds(30));
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(*ParseDuration("20us"), microseconds(20));
  EXPECT_EQ(*ParseDuration("2h"), hours(2));
  EXPECT_EQ(*ParseDuration("0"), Duration::zero());
  EXPECT_EQ(*ParseDuration("1281023h"), hours(1281023));  // the longest
  EXPECT_EQ(*ParseDuration("1281023.0h"), hours(1281023));
  EXPECT_FALSE(ParseDuration("1281024h").ok());
}

TEST(DurationTest, RefusesNumbersWithoutUnitAndNonsense) {
  for (const char* text :
       {"", "30", "s", "30 s", "-1s", "30S", "1d", "99999999999h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_EQ(ParseDuration("30").status().message(),
            "expected duration like 30s or 500ms (got \"30\")");
}

TEST(DurationTest, FormatsWithTheLargestExactUnit) {
  EXPECT_EQ(FormatDuration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatDuration(seconds(90)), "90s");
  EXPECT_EQ(FormatDuration(hours(1)), "1h");
  EXPECT_EQ(FormatDuration(Duration::zero()), "0");
}

TEST(HostPortListTest, SplitsAndRefusesDuplicates) {
  EXPECT_THAT(*ParseHostPortList("a:1, [::1]:2"),
              ElementsAre("a:1", "[::1]:2"));
  EXPECT_TRUE(ParseHostPortList("")->empty());
  EXPECT_EQ(ParseHostPortList("a:1,b:2,a:1").status().message(),
            "a:1 is given twice");
  EXPECT_FALSE(ParseHostPortList("a:1,,b:2").ok());
  EXPECT_FALSE(ParseHostPortList("a:1,").ok());
}

TEST(ClosestNameTest, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names{"listen", "admin", "model"};
  EXPECT_EQ(ClosestName("lisen", names), "listen");
  EXPECT_EQ(ClosestName("modle", names), "model");
  EXPECT_EQ(ClosestName("temperature", names), "");
  EXPECT_EQ(ClosestName(std::string(5000, 'x'), names), "");
}

TEST(ClosestNameTest, PrefersTheLongFormOfAnAbbreviation) {
  const std::vector<std::string> names{"help", "temperature", "top-k"};
  EXPECT_EQ(ClosestName("temp", names), "temperature");
  EXPECT_EQ(ClosestName("te", names), "");
}

}  // namespace
}  // namespace baton
