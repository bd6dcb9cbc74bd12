#include "decode_worker/admission_turn.h"

#include <gtest/gtest.h>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AdmissionTurnTest : public testing::Test {
 protected:
  AdmissionTurn::Request Waiting(Duration time, uint32_t priority = 1) const {
    return {priority, now_ - time};
  }
  std::string WhyNot(const AdmissionTurn::Request& request) const {
    return turn_.WhyNot(request, now_);
  }
  AdmissionTurn turn_;
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(AdmissionTurnTest, AfterAShortWaitThereIsNone) {
  turn_.Refused(Waiting(milliseconds(1900)), now_);
  EXPECT_EQ(WhyNot(Waiting(seconds(0))), "");
}

TEST_F(AdmissionTurnTest, WhoWaitedLessIsRefusedForASecond) {
  turn_.Refused(Waiting(seconds(3)), now_);
  EXPECT_EQ(WhyNot(Waiting(seconds(1))),
            "turn: room is kept for a request that has waited 3 s");
  EXPECT_EQ(WhyNot(Waiting(seconds(4))), "");
  now_ += milliseconds(999);
  EXPECT_NE(WhyNot(Waiting(seconds(1))), "");
  now_ += milliseconds(1);
  EXPECT_EQ(WhyNot(Waiting(seconds(1))), "");
}

TEST_F(AdmissionTurnTest, ItComesAgainAndIsAccepted) {
  const auto request = Waiting(seconds(3));
  turn_.Refused(request, now_);
  now_ += milliseconds(900);
  turn_.Refused(request, now_);
  now_ += milliseconds(900);
  EXPECT_NE(WhyNot(Waiting(seconds(1))), "");
  EXPECT_EQ(WhyNot(request), "");
  turn_.Accepted(request);
  EXPECT_EQ(WhyNot(Waiting(seconds(1))), "");
}

TEST_F(AdmissionTurnTest, PriorityComesBeforeAge) {
  turn_.Refused(Waiting(seconds(3), 1), now_);
  EXPECT_EQ(WhyNot(Waiting(seconds(0), 0)), "");
  EXPECT_NE(WhyNot(Waiting(seconds(9), 2)), "");
  turn_.Refused(Waiting(seconds(9), 2), now_);
  EXPECT_NE(WhyNot(Waiting(seconds(5), 2)), "") << "it does not take the turn";
  turn_.Refused(Waiting(seconds(2), 0), now_);
  EXPECT_NE(WhyNot(Waiting(seconds(3), 1)), "") << "it does";
}

TEST_F(AdmissionTurnTest, OthersThatAreAcceptedDoNotEndIt) {
  turn_.Refused(Waiting(seconds(3)), now_);
  turn_.Accepted(Waiting(seconds(5)));
  EXPECT_NE(WhyNot(Waiting(seconds(1))), "");
}

// Routers keep sending small requests as fast as the worker takes them; one
// request wants nearly all of the pool.
class Overtaking {
 public:
  Overtaking() : h_(Options()) {
    h_.OpenSession(1);
    h_.OpenSession(2);
  }
  // Until the large one is accepted, at most so long.
  Duration Run(Duration longest) {
    const MonotonicTime begin = h_.now;
    MonotonicTime retry = begin;
    while (h_.now - begin < longest) {
      while (Try(1, toy::MakeSpec(20, 12), h_.now)) continue;
      if (h_.now >= retry) {
        if (Try(2, toy::MakeSpec(400, 20), begin)) return h_.now - begin;
        retry = h_.now + milliseconds(25);
      }
      if (h_.step.has_value()) h_.FinishStep();
      h_.now += milliseconds(5);
      h_.Feed(Tick{});
    }
    return Duration::max();
  }

 private:
  static DecodeOptions Options() {
    DecodeOptions options = SchedulerHarness::Options();
    options.blocks = 30;
    return options;
  }
  bool Try(uint64_t session, const v1::SequenceSpec& spec,
           MonotonicTime since) {
    v1::DecodeCommand command;
    command.mutable_serve()->set_attempt_id(++attempt_);
    *command.mutable_serve()->mutable_sequence() = spec;
    command.mutable_serve()->set_deadline_ms(100000);
    command.mutable_serve()->set_waited_ms(
        static_cast<uint32_t>(Milliseconds(h_.now - since)));
    h_.Send(session, std::move(command));
    for (const v1::DecodeEvent& event : h_.TakeEvents(session)) {
      if (event.refused().attempt_id() == attempt_) return false;
    }
    return true;
  }
  SchedulerHarness h_;
  uint64_t attempt_ = 0;
};

TEST(DecodeOvertaking, ALargeRequestIsAcceptedInTheEnd) {
  const Duration took = Overtaking().Run(seconds(20));
  EXPECT_GT(took, seconds(1)) << "there was room at once: this proves nothing";
  EXPECT_LT(took, milliseconds(2500)) << "2 s, and the pool drains";
}

}  // namespace
}  // namespace baton::decode
