#include "common/telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace baton::log {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Logs in a process of its own, which writes its queue when it exits.
#define EXPECT_LOGGED(statement, matcher) \
  EXPECT_EXIT(                            \
      {                                   \
        statement;                        \
        std::exit(0);                     \
      },                                  \
      testing::ExitedWithCode(0), matcher)

TEST(LogDeathTest, WritesTimeLevelRoleAndText) {
  EXPECT_LOGGED(
      {
        InitLogging({Level::kInfo, "decode"});
        Info("{} blocks of {}", 3, "16");
      },
      ContainsRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]+\\.[0-9]+Z I "
                    "decode: 3 blocks of 16\n"));
}

TEST(LogDeathTest, DropsLinesBelowTheLevel) {
  EXPECT_LOGGED(
      {
        InitLogging({Level::kWarn, "router"});
        Debug("one");
        Info("two");
        Warn("three");
        Error("four");
      },
      AllOf(HasSubstr("W router: three\n"), HasSubstr("E router: four\n"),
            Not(HasSubstr("one")), Not(HasSubstr("two"))));
}

TEST(LogDeathTest, OneLinePerCallWhateverIsInside) {
  EXPECT_LOGGED(
      {
        InitLogging({Level::kInfo, "router"});
        Info("{}", "forged\n2000-01-01 {} \x1b[31m");
      },
      HasSubstr("forged\\n2000-01-01 {} \\x1b[31m\n"));
}

TEST(LogDeathTest, CutsLongLines) {
  EXPECT_LOGGED(
      {
        InitLogging({Level::kInfo, "router"});
        Info("{}", std::string(10'000, 'x'));
      },
      AllOf(HasSubstr(std::string(4096, 'x') + "...\n"),
            Not(HasSubstr(std::string(4097, 'x')))));
}

TEST(LogDeathTest, WorksBeforeInit) {
  EXPECT_LOGGED(Info("early"), HasSubstr("I baton: early\n"));
}

TEST(ParseLevelTest, KnowsFourNames) {
  EXPECT_EQ(*ParseLevel("debug"), Level::kDebug);
  EXPECT_EQ(*ParseLevel("info"), Level::kInfo);
  EXPECT_EQ(*ParseLevel("warn"), Level::kWarn);
  EXPECT_EQ(*ParseLevel("error"), Level::kError);
  EXPECT_EQ(ParseLevel("INFO").status().message(),
            "expected debug, info, warn or error (got \"INFO\")");
}

}  // namespace
}  // namespace baton::log
