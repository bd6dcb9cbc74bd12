#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "common/rpc/status.h"
#include "router/client/cli/command.h"
#include "router/client/client.h"

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(AdviceTest, SaysHowToStartARouterWhenNobodyListens) {
  Client client("127.0.0.1:1");
  EXPECT_EQ(Advice(client.ListModels().status(), "127.0.0.1:1"),
            "no router at 127.0.0.1:1; start one with: baton up");
}

TEST(AdviceTest, ARouterWithoutWorkersIsNotAMissingRouter) {
  EXPECT_EQ(Advice(absl::UnavailableError("no decode worker is ready"), "r:1"),
            "UNAVAILABLE: no decode worker is ready\n"
            "see which workers are ready with: baton status");
}

TEST(AdviceTest, ListsWrongFieldsOnce) {
  absl::Status status = InvalidField("n", "got 9, allowed 1..8");
  AddFieldViolation(&status, "top_p", "got 2, allowed (0, 1]");
  EXPECT_EQ(Advice(status, "r:1"),
            "INVALID_ARGUMENT: n: got 9, allowed 1..8\n"
            "  top_p: got 2, allowed (0, 1]");
}

TEST(AdviceTest, SaysWhenToTryAgain) {
  absl::Status status = absl::ResourceExhaustedError("queue is full");
  AddRetryInfo(&status, milliseconds(1500));
  EXPECT_THAT(Advice(status, "r:1"), HasSubstr("try again in 1500ms"));
  AddRetryInfo(&status, std::chrono::nanoseconds(3087918187));
  EXPECT_THAT(Advice(status, "r:1"), HasSubstr("try again in 3088ms"));
}

TEST(AdviceTest, MessagesCannotDriveTheTerminal) {
  EXPECT_EQ(Advice(absl::AbortedError("\x1b[2Jx"), "r:1"), "ABORTED: [2Jx");
}

TEST(FailTest, ExitStatusFollowsTheCode) {
  EXPECT_EQ(Fail(absl::CancelledError(""), "r:1"), 130);
  EXPECT_EQ(Fail(absl::InvalidArgumentError(""), "r:1"), 2);
  EXPECT_EQ(Fail(absl::UnavailableError(""), "r:1"), 1);
}

TEST(ExecSiblingTest, MissingBinaryIsNotFound) {
  const char* arguments[] = {"baton-nothing", nullptr};
  EXPECT_TRUE(absl::IsNotFound(ExecSibling("baton-nothing", arguments)));
}

TEST(ProgramToTypeTest, IsThePathUnlessTheShellFindsThisBinary) {
  EXPECT_THAT(ProgramToType(), testing::EndsWith("baton"));
  setenv("PATH", "", 1);
  EXPECT_THAT(ProgramToType(), HasSubstr("/baton"));
}

}  // namespace
}  // namespace baton::cli
