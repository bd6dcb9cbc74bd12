#include "decode_worker/admission_turn.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AdmissionTurnTest : public testing::Test {
 protected:
  // Another request with every call.
  AdmissionTurn::Request Waiting(Duration time, uint32_t priority = 1) {
    ++next_;
    return {SessionId(1), next_, AttemptId(1000 + next_), priority,
            now_ - time};
  }
  std::string WhyNot(const AdmissionTurn::Request& request) const {
    return turn_.WhyNot(request, now_);
  }
  AdmissionTurn turn_;
  MonotonicTime now_{std::chrono::hours(1)};
  uint64_t next_ = 1;
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
  turn_.Accepted(Waiting(seconds(3)));  // alike, and another
  EXPECT_NE(WhyNot(Waiting(seconds(1))), "");
}

// One router's number 7 is not the other's.
TEST_F(AdmissionTurnTest, NumbersAreOfASession) {
  const AdmissionTurn::Request mine{SessionId(1), 7, AttemptId(1), 1,
                                    now_ - seconds(3)};
  turn_.Refused(mine, now_);
  AdmissionTurn::Request other = mine;
  other.session = SessionId(2);
  turn_.Accepted(other);
  other.since += milliseconds(1);
  EXPECT_NE(WhyNot(other), "");
  EXPECT_EQ(WhyNot(mine), "");
}

// Commands are under way for longer and shorter times; none makes a request
// younger than it was.
TEST_F(AdmissionTurnTest, ALateCommandDoesNotLoseTheTurn) {
  auto request = Waiting(seconds(3));
  turn_.Refused(request, now_);
  request.since += milliseconds(300);
  EXPECT_EQ(WhyNot(request), "");
  turn_.Refused(request, now_);
  auto younger = Waiting(seconds(3));
  younger.since += milliseconds(100);
  EXPECT_NE(WhyNot(younger), "");
}

TEST_F(AdmissionTurnTest, ItDoesNotDriftAmongAlikeRequests) {
  const auto first = Waiting(seconds(3));
  turn_.Refused(first, now_);
  for (int i = 1; i <= 200; ++i) {
    auto next = first;
    next.id = ++next_;
    next.since += i * milliseconds(20);
    now_ += milliseconds(20);
    EXPECT_NE(WhyNot(next), "") << i;
    turn_.Refused(next, now_);
    turn_.Refused(first, now_);
  }
}

// Older ones get in one after the other; room is never given to a younger one
// in between.
TEST_F(AdmissionTurnTest, AQueueInFrontDoesNotEndAClaim) {
  std::vector<AdmissionTurn::Request> older;
  for (int i = 0; i < 20; ++i) older.push_back(Waiting(seconds(30 - i)));
  const auto large = Waiting(seconds(5));
  turn_.Refused(large, now_);
  for (const auto& other : older) {
    turn_.Refused(other, now_);
    EXPECT_NE(WhyNot(large), "") << "not before it";
    turn_.PutOff(large, now_);
    now_ += milliseconds(700);
    turn_.Accepted(other);
    EXPECT_NE(WhyNot(Waiting(seconds(4))), "");
    EXPECT_EQ(WhyNot(large), "");
  }
}

// Else each would leave a claim behind when it finds room elsewhere, and an
// idle worker would turn all of them away.
TEST_F(AdmissionTurnTest, WhoOnlyWaitsForAnotherHasNoClaim) {
  turn_.Refused(Waiting(seconds(9)), now_);
  now_ += milliseconds(900);
  const auto second = Waiting(seconds(8));
  EXPECT_NE(WhyNot(second), "");
  turn_.PutOff(second, now_);
  now_ += milliseconds(100);
  EXPECT_EQ(WhyNot(Waiting(seconds(3))), "");
}

TEST_F(AdmissionTurnTest, WhoFoundRoomElsewhereIsNotWaitedFor) {
  auto request = Waiting(seconds(9));
  turn_.Refused(request, now_);
  const AttemptId first = request.attempt;
  request.attempt = AttemptId(50);
  turn_.Refused(request, now_);
  EXPECT_FALSE(turn_.Withdrawn(SessionId(1), first)) << "it came again";
  EXPECT_FALSE(turn_.Withdrawn(SessionId(2), AttemptId(50)));
  EXPECT_NE(WhyNot(Waiting(seconds(3))), "");
  EXPECT_TRUE(turn_.Withdrawn(SessionId(1), AttemptId(50)));
  EXPECT_EQ(WhyNot(Waiting(seconds(3))), "");
}

TEST_F(AdmissionTurnTest, ClaimsAreBounded) {
  std::vector<AdmissionTurn::Request> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(Waiting(seconds(3) + i * milliseconds(1)));
    turn_.Refused(all.back(), now_);
  }
  EXPECT_EQ(WhyNot(all[999]), "");
  EXPECT_NE(WhyNot(all[998]), "");
  for (int i = 999; i > 999 - 64; --i) turn_.Accepted(all[i]);
  EXPECT_EQ(WhyNot(Waiting(seconds(0))), "") << "the youngest went without";
}

// Routers keep sending small requests as fast as the worker takes them; one
// request wants nearly all of the pool. All have waited for `waited`.
class Overtaking {
 public:
  explicit Overtaking(Duration waited) : waited_(waited), h_(Options()) {
    h_.OpenSession(1);
    h_.OpenSession(2);
  }
  // Until the large one is accepted, at most so long.
  Duration Run(Duration longest) {
    const MonotonicTime begin = h_.now;
    MonotonicTime retry = begin;
    uint64_t small = 1;
    while (h_.now - begin < longest) {
      while (Try(1, small, toy::MakeSpec(20, 12), h_.now)) ++small;
      ++small;
      if (h_.now >= retry) {
        if (Try(2, 1, toy::MakeSpec(400, 20), begin)) return h_.now - begin;
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
  bool Try(uint64_t session, uint64_t request, const v1::SequenceSpec& spec,
           MonotonicTime since) {
    h_.request_id = request;
    h_.waited_ms =
        static_cast<uint32_t>(Milliseconds(waited_ + h_.now - since));
    h_.Serve(session, ++attempt_, spec);
    for (const v1::DecodeEvent& event : h_.TakeEvents(session)) {
      if (event.refused().attempt_id() == attempt_) return false;
    }
    return true;
  }
  const Duration waited_;
  SchedulerHarness h_;
  uint64_t attempt_ = 0;
};

TEST(DecodeOvertaking, ALargeRequestIsAcceptedInTheEnd) {
  const Duration took = Overtaking(seconds(0)).Run(seconds(20));
  EXPECT_GT(took, seconds(1)) << "there was room at once: this proves nothing";
  EXPECT_LT(took, milliseconds(2500)) << "2 s, and the pool drains";
}

// The queue is long, and what comes from it is old.
TEST(DecodeOvertaking, AlsoWhenAllHaveWaited) {
  const Duration took = Overtaking(seconds(10)).Run(seconds(20));
  EXPECT_GT(took, milliseconds(20)) << "there was room at once";
  EXPECT_LT(took, milliseconds(500)) << "the pool drains";
}

}  // namespace
}  // namespace baton::decode
