#include "router/front_door/field_errors.h"

#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

TEST(FieldErrorsTest, NoErrorIsOk) {
  EXPECT_TRUE(FieldErrors().ToStatus().ok());
}

TEST(FieldErrorsTest, AllAreListedWithDetails) {
  FieldErrors errors;
  errors.Add("n", "out of range", "0", "1..8");
  errors.Add("prompt", "no tokens");
  const absl::Status status = errors.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "n: out of range (got 0, allowed 1..8); prompt: no tokens");
  EXPECT_EQ(
      FieldViolations(status),
      (std::vector<FieldViolation>{{"n", "out of range (got 0, allowed 1..8)"},
                                   {"prompt", "no tokens"}}));
}

TEST(FieldErrorsTest, ManyAreCut) {
  FieldErrors errors;
  for (int i = 0; i < 1000; ++i) errors.Add(StrCat("f", i), "bad");
  EXPECT_EQ(errors.count(), 1000);
  EXPECT_EQ(FieldViolations(errors.ToStatus()).size(), 16u);
  EXPECT_NE(errors.ToStatus().message().find("; and 984 more"),
            std::string::npos);
}

TEST(FieldErrorsTest, QuotedIsSafeAndShort) {
  EXPECT_EQ(Quoted("x\n'\x01"), "'x\\n\\'\\x01'");
  EXPECT_EQ(Quoted(std::string(1000, 'a')),
            "'" + std::string(64, 'a') + "...'");
}

}  // namespace
}  // namespace baton::router
