// Transfers that do not come to their end, and whose fault that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using testing::SizeIs;

class PrefillTransferTest : public testing::Test {
 protected:
  PrefillTransferTest() { h.OpenSession(1); }
  // What the router hears of an attempt whose transfer ends like this.
  v1::AttemptFailure FailedOn(absl::Status why) {
    h.Start(1, 1, toy::MakeSpec(100, 10));
    h.FinishStep();
    const TransferId transfer = h.transfers.begin()->first;
    h.Fail(transfer, std::move(why));
    auto events = h.TakeEvents(1);
    EXPECT_THAT(events, SizeIs(1));
    h.FinishAllSteps();
    h.CloseTransfer(transfer);
    EXPECT_TRUE(h.AllFree());
    return events[0].failed();
  }
  SchedulerHarness h;
};

TEST_F(PrefillTransferTest, LinksAndBreachesAreFailuresOfTheTransfer) {
  uint64_t failures = 0;
  for (const absl::Status& why :
       {absl::UnavailableError("link"), absl::DataLossError("crc"),
        absl::DeadlineExceededError("too slow"),
        absl::AlreadyExistsError("redeemed"),
        absl::FailedPreconditionError("epoch")}) {
    const v1::AttemptFailure failed = FailedOn(why);
    EXPECT_TRUE(failed.retryable());
    EXPECT_EQ(failed.cause(), v1::FAILURE_CAUSE_TRANSFER) << why;
    EXPECT_EQ(h.scheduler.counters().transfer_failures, ++failures);
  }
}

// The decode worker needed the blocks for others, or nobody wants the answer:
// it cancels a transfer that has begun, and knows no landing for a later one.
TEST_F(PrefillTransferTest, ALandingThatWasGivenUpIsNobodysFault) {
  for (const absl::Status& why :
       {absl::CancelledError("the receiver cancelled"),
        absl::NotFoundError("landing: no such landing is open")}) {
    const v1::AttemptFailure failed = FailedOn(why);
    EXPECT_TRUE(failed.retryable());
    EXPECT_EQ(failed.cause(), v1::FAILURE_CAUSE_LOAD) << why;
  }
  EXPECT_EQ(h.scheduler.counters().transfer_failures, 0u);
}

}  // namespace
}  // namespace baton::prefill
