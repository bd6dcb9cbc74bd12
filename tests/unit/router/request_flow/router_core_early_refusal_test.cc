// What is refused before its prompt is read, and who must not be.
#include <gtest/gtest.h>

#include "common/rpc/status.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::seconds;

constexpr Duration kMinute = seconds(60);

class EarlyRefusalTest : public ::testing::Test {
 protected:
  explicit EarlyRefusalTest(
      RouterOptions options = {.admission = {.max_requests = 3}})
      : driver_(options) {}

  RequestOutline Outline(const std::string& tenant, int priority = 1) {
    return {.tenant = tenant,
            .priority = priority,
            .deadline = driver_.now() + kMinute,
            .prompt_tokens = 10,
            .max_tokens = 8};
  }
  absl::Status Early(const RequestOutline& outline) {
    return driver_.core().RefuseEarly(outline, driver_.now());
  }
  // Three requests wait, with no credit to start them.
  void Fill(const std::string& tenant, int priority = 1) {
    driver_.AddPrefill("p", 0);
    driver_.AddDecode("d");
    for (int i = 0; i < 3; ++i) {
      driver_.Ask(10, 1, 8, kMinute, priority, tenant);
    }
  }
  uint64_t Rejected(Rejection why) {
    return driver_.core().counters().rejected[static_cast<size_t>(why)];
  }

  CoreDriver driver_;
};

TEST_F(EarlyRefusalTest, AFullQueueRefusesWhoeverFilledIt) {
  Fill("flood");
  const absl::Status early = Early(Outline("flood"));
  EXPECT_EQ(early.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryDelay(early).has_value());
  EXPECT_EQ(Rejected(Rejection::kQueueFull), 1u);
  const RequestId whole = driver_.Ask(10, 1, 8, kMinute, 1, "flood");
  EXPECT_EQ(driver_.answer(whole).status->message(), early.message());
}

TEST_F(EarlyRefusalTest, AQuietTenantIsNotRefused) {
  Fill("flood");
  EXPECT_TRUE(Early(Outline("quiet")).ok());
  const RequestId quiet = driver_.Ask(10, 1, 8, kMinute, 1, "quiet");
  EXPECT_FALSE(driver_.answer(quiet).status.has_value()) << "it displaces";
  EXPECT_EQ(Rejected(Rejection::kQueueFull), 0u);
}

TEST_F(EarlyRefusalTest, AHigherBandIsNotRefused) {
  Fill("mine", 2);
  EXPECT_TRUE(Early(Outline("mine", 1)).ok());
  EXPECT_TRUE(Early(Outline("mine", 0)).ok());
  EXPECT_FALSE(Early(Outline("mine", 2)).ok());
  const RequestId high = driver_.Ask(10, 1, 8, kMinute, 0, "mine");
  EXPECT_FALSE(driver_.answer(high).status.has_value()) << "it displaces";
}

TEST_F(EarlyRefusalTest, WhatIsTooLargeIsToldByHowMuch) {
  driver_.AddDecode("d");
  RequestOutline huge = Outline("");
  huge.prompt_tokens = 1 << 30;
  EXPECT_TRUE(Early(huge).ok());
}

TEST_F(EarlyRefusalTest, NothingIsTakenWithoutAWorkerOrInADrain) {
  const absl::Status early = Early(Outline(""));
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RetryDelay(early).has_value());
  EXPECT_EQ(Rejected(Rejection::kNoWorker), 1u);
  driver_.AddDecode("d");
  EXPECT_TRUE(Early(Outline("")).ok());
  driver_.Handle(Drain{});
  EXPECT_EQ(Early(Outline("")).message(), "router: draining");
}

TEST_F(EarlyRefusalTest, LeavesNoTraceOfTheTenant) {
  driver_.AddDecode("d");
  EXPECT_TRUE(Early(Outline("never seen")).ok());
  EXPECT_EQ(driver_.core().counters().active_tenants, 0u);
}

}  // namespace
}  // namespace baton::router
