#include "common/base/process_start.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(ProcessStartTest, WrongInputIsTwo) {
  EXPECT_EQ(StartFailureCode(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(StartFailureCode(absl::NotFoundError("x")), 2);
  EXPECT_EQ(StartFailureCode(absl::FailedPreconditionError("x")), 2);
  EXPECT_EQ(StartFailureCode(absl::UnavailableError("x")), 1);
  EXPECT_EQ(StartFailureCode(absl::InternalError("x")), 1);
}

}  // namespace
}  // namespace baton
