#include "router/request_flow/attempt_pace.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonotonicTime kDeadline(seconds(100));
constexpr MonotonicTime kEarly = kDeadline - seconds(1);

class AttemptPaceTest : public ::testing::Test {
 protected:
  AttemptPaceTest() {
    attempt_.prefill = WorkerIndex(0);
    attempt_.decode = WorkerIndex(1);
  }
  Pace At(AttemptPhase phase, MonotonicTime now, bool expected = true) {
    attempt_.phase = phase;
    return PaceOf(attempt_, expected, kDeadline, now);
  }

  Attempt attempt_;
};

TEST_F(AttemptPaceTest, WhatTheWorkerClosedIsInTime) {
  attempt_.decode_done = true;
  EXPECT_EQ(At(AttemptPhase::kClosing, kEarly), Pace::kInTime);
  EXPECT_EQ(At(AttemptPhase::kClosing, kDeadline), Pace::kInTime);
}

TEST_F(AttemptPaceTest, WhatItNeverClosedSaysNothing) {
  EXPECT_EQ(At(AttemptPhase::kClosing, kEarly), Pace::kUnknown);
  EXPECT_EQ(At(AttemptPhase::kClosing, kDeadline), Pace::kUnknown);
}

TEST_F(AttemptPaceTest, WhatStillGrewAtItsDeadlineIsLate) {
  EXPECT_EQ(At(AttemptPhase::kDecoding, kDeadline - milliseconds(50)),
            Pace::kLate);
  EXPECT_EQ(At(AttemptPhase::kDecoding, kEarly), Pace::kUnknown);
  attempt_.prefill.reset();
  EXPECT_EQ(At(AttemptPhase::kPrefilling, kDeadline), Pace::kLate);
}

TEST_F(AttemptPaceTest, WhatHadNotComeToItYetIsNotItsFault) {
  for (AttemptPhase phase :
       {AttemptPhase::kReserving, AttemptPhase::kPrefilling,
        AttemptPhase::kTransferring}) {
    EXPECT_EQ(At(phase, kDeadline), Pace::kUnknown);
  }
}

TEST_F(AttemptPaceTest, WithoutOthersThatWaitItSaysNothing) {
  attempt_.decode_done = true;
  EXPECT_EQ(At(AttemptPhase::kClosing, kEarly, false), Pace::kUnknown);
  EXPECT_EQ(At(AttemptPhase::kDecoding, kDeadline, false), Pace::kUnknown);
}

}  // namespace
}  // namespace baton::router
