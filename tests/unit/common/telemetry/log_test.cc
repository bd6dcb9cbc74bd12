#include "common/telemetry/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

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

// The exit status says what went wrong in the process of its own.
enum Failure { kNone, kWaited, kNotCounted };

TEST(LogDeathTest, ABlockedPipeCostsLinesAndNoTime) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        dup2(ends[1], STDERR_FILENO);
        InitLogging({Level::kInfo, "router"});
        for (int i = 0; i < 20'000; ++i) Info("{}", std::string(100, 'x'));
        if (DroppedLines() < 5'000) ExitProcess(kNotCounted);
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::seconds(20));
          std::_Exit(kWaited);
        }).detach();
        ExitProcess(kNone);
      },
      testing::ExitedWithCode(kNone), "");
}

TEST(LogDeathTest, AFullDiskCostsLines) {
  EXPECT_EXIT(
      {
        dup2(open("/dev/full", O_WRONLY), STDERR_FILENO);
        InitLogging({Level::kInfo, "router"});
        for (int i = 0; i < 10; ++i) Info("lost");
        while (DroppedLines() < 10) std::this_thread::yield();
        ExitProcess(kNone);
      },
      testing::ExitedWithCode(kNone), "");
}

TEST(LogDeathTest, TellsWhatWasLostOnceItCanWriteAgain) {
  EXPECT_LOGGED(
      {
        const int working = dup(STDERR_FILENO);
        dup2(open("/dev/full", O_WRONLY), STDERR_FILENO);
        InitLogging({Level::kInfo, "router"});
        for (int i = 0; i < 7; ++i) Info("lost");
        while (DroppedLines() < 7) std::this_thread::yield();
        dup2(working, STDERR_FILENO);
        Info("found");
      },
      AllOf(HasSubstr("I router: found\n"),
            HasSubstr("W router: 7 log lines were lost, 7 in all\n"),
            Not(HasSubstr("I router: lost"))));
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
