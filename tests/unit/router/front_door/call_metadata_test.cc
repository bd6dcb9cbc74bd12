#include "router/front_door/call_metadata.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

TEST(CallMetadataTest, LabelsAreVisibleAndShort) {
  EXPECT_EQ(AcceptRequestLabel("a-B_3/~!"), "a-B_3/~!");
  EXPECT_EQ(AcceptRequestLabel(std::string(128, 'x'))->size(), 128u);
  EXPECT_FALSE(AcceptRequestLabel(std::string(129, 'x')).has_value());
  EXPECT_FALSE(AcceptRequestLabel("").has_value());
  EXPECT_FALSE(AcceptRequestLabel("two words").has_value());
  EXPECT_FALSE(AcceptRequestLabel("line\nbreak").has_value());
  EXPECT_FALSE(AcceptRequestLabel("\xc3\xa9").has_value());
}

TEST(CallMetadataTest, TraceparentIsPassedOnOnlyIfWellFormed) {
  const std::string good =
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(AcceptTraceparent(good), good);
  EXPECT_EQ(AcceptTraceparent(""), "");
  EXPECT_EQ(AcceptTraceparent(good + "0"), "");
  EXPECT_EQ(AcceptTraceparent("01" + good.substr(2)), "");
  EXPECT_EQ(AcceptTraceparent(
                "00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
            "");
  EXPECT_EQ(AcceptTraceparent(
                "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            "");
}

}  // namespace
}  // namespace baton::router
