#include "common/base/strings.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(StringsTest, ConcatenatesEveryKind) {
  const std::string_view view = "view";
  EXPECT_EQ(StrCat("a", view, std::string("b"), 7, ' ' == 32, 2.5),
            "aviewb712.5");
  std::string text = "x";
  StrAppend(&text, view, 1);
  EXPECT_EQ(text, "xview1");
}

TEST(StringsTest, ViewsCrossWithoutCopy) {
  const std::string_view view("a\0b", 3);
  EXPECT_EQ(ToAbsl(view).data(), view.data());
  EXPECT_EQ(ToStd(ToAbsl(view)), view);
}

}  // namespace
}  // namespace baton
