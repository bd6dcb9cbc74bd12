#include "common/config/drain_warning.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::seconds;

TEST(DrainWarning, NamesWhatIsAllowed) {
  EXPECT_EQ(DrainWarning(seconds(30), seconds(3), Duration::zero()), "");
  EXPECT_EQ(DrainWarning(seconds(30), seconds(3), seconds(33)), "");
  EXPECT_EQ(DrainWarning(seconds(30), seconds(3), seconds(30)),
            "drain-timeout: a drain may need 33s, but termination-grace ends "
            "it after 30s; set drain-timeout to at most 27s");
}

TEST(DrainWarning, AGraceThatIsTooShortForAnyDrain) {
  EXPECT_EQ(DrainWarning(seconds(5), seconds(9), seconds(2)),
            "drain-timeout: a drain may need 14s, but termination-grace ends "
            "it after 2s; set drain-timeout to at most 0");
}

}  // namespace
}  // namespace baton
