// Deadlines are the router's: what a worker's clock says is not final.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(RouterCoreDeadlineTest, AWorkerWhoseClockRunsAheadDoesNotEndTheRequest) {
  CoreDriver driver;
  const WorkerIndex prefill = driver.AddPrefill("p");
  const WorkerIndex decode = driver.AddDecode("d");
  const RequestId id = driver.Ask(10, 1, 8, seconds(60));
  driver.Reserved(decode, driver.last_attempt());
  const AttemptId first = driver.last_attempt();
  driver.Failed(prefill, first, /*retryable=*/false,
                absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(driver.answer(id).status.has_value());
  EXPECT_NE(driver.last_attempt(), first);
  EXPECT_EQ(driver.core().counters().replays, 1u);
}

TEST(RouterCoreDeadlineTest, AtTheDeadlineTheRequestEnds) {
  CoreDriver driver;
  const WorkerIndex prefill = driver.AddPrefill("p");
  const WorkerIndex decode = driver.AddDecode("d");
  const RequestId id = driver.Ask(10, 1, 8, seconds(5));
  driver.Reserved(decode, driver.last_attempt());
  driver.Advance(seconds(5));
  driver.Failed(prefill, driver.last_attempt(), /*retryable=*/false,
                absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(driver.answer(id).status.has_value());
  EXPECT_TRUE(absl::IsDeadlineExceeded(*driver.answer(id).status));
}

// A client's own deadline ends its call a moment before or after this one.
TEST(RouterCoreDeadlineTest, ACancelAtTheDeadlineIsTheDeadline) {
  for (const int ms : {0, 4900, 4960, 4999}) {
    CoreDriver driver;
    driver.AddPrefill("p");
    driver.AddDecode("d");
    const RequestId id = driver.Ask(10, 1, 8, seconds(5));
    driver.Advance(std::chrono::milliseconds(ms));
    driver.Cancel(id);
    EXPECT_EQ(driver.answer(id).status->code(),
              ms < 4950 ? absl::StatusCode::kCancelled
                        : absl::StatusCode::kDeadlineExceeded)
        << ms;
  }
}

TEST(RouterCoreDeadlineTest, WhoIsCutOffEndsWithTheReason) {
  CoreDriver driver;
  driver.AddPrefill("p");
  driver.AddDecode("d");
  const RequestId id = driver.Ask(10, 1, 8, seconds(5));
  driver.Advance(std::chrono::milliseconds(4980));
  driver.Handle(ClientCancelled{id, absl::ResourceExhaustedError("slow")});
  EXPECT_EQ(driver.answer(id).status, absl::ResourceExhaustedError("slow"));
}

TEST(RouterCoreDeadlineTest, ALateRouterHearsItsWorkersOut) {
  CoreDriver driver;
  const WorkerIndex prefill = driver.AddPrefill("p");
  const WorkerIndex decode = driver.AddDecode("d");
  const RequestId id = driver.Ask(10, 1, 8, seconds(60));
  driver.Reserved(decode, driver.last_attempt());
  driver.TakeLog();
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  driver.Suspend(seconds(30));
  driver.Advance(std::chrono::milliseconds(1400));
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
  driver.Load(prefill, load);
  driver.Load(decode, load);
  driver.Advance(std::chrono::milliseconds(1400));
  EXPECT_THAT(driver.TakeLog(), Not(Contains(HasSubstr("close"))));
  EXPECT_FALSE(driver.answer(id).status.has_value());
}

TEST(RouterCoreDeadlineTest, ALateRouterDoesNotCallItsWorkersSlow) {
  CoreDriver driver;
  const WorkerIndex prefill = driver.AddPrefill("p", 0);
  const WorkerIndex decode = driver.AddDecode("d");
  for (int i = 0; i < 110; ++i) driver.Ask(10, 1, 8, seconds(60));
  for (uint64_t served = 1; served <= 10; ++served) {
    driver.Credit(prefill, 10 * served);
    driver.Reserved(decode, driver.last_attempt());
    driver.Advance(std::chrono::milliseconds(100));
    driver.FirstTokens(prefill, driver.last_attempt(), {{0, 0, 7, true}});
    driver.Load(decode, {});
  }
  ASSERT_EQ(driver.core().counters().queued_work, 100u);
  driver.Suspend(seconds(20));
  EXPECT_TRUE(driver.core()
                  .RefuseEarly({.tenant = "",
                                .priority = 1,
                                .deadline = driver.now() + seconds(50),
                                .prompt_tokens = 10,
                                .max_tokens = 8},
                               driver.now())
                  .ok());
  const RequestId id = driver.Ask(10, 1, 8, seconds(50));
  EXPECT_FALSE(driver.answer(id).status.has_value());
}

}  // namespace
}  // namespace baton::router
