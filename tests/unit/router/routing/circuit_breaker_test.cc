#include "router/routing/circuit_breaker.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = CircuitBreaker::State;

class CircuitBreakerTest : public ::testing::Test {
 protected:
  bool Fail() { return breaker_.Failure({}, "broken", now_, &jitter_); }
  bool Lose() { return breaker_.SessionLost({}, "reset", now_, &jitter_); }
  void Open() {
    while (!Fail()) {
    }
  }
  // Waits until it is half-open; how long that took.
  Duration Wait() {
    const MonotonicTime start = now_;
    now_ = breaker_.reopens();
    EXPECT_TRUE(breaker_.Advance(now_));
    return now_ - start;
  }

  MonotonicTime now_ = MonotonicTime(seconds(1000));
  Jitter jitter_{3};
  CircuitBreaker breaker_;
};

TEST_F(CircuitBreakerTest, OpensAfterFailuresInARow) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Fail());
  breaker_.Success(now_);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Fail());
  EXPECT_TRUE(Fail());
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_EQ(breaker_.reason(), "5 failures in a row, the last: broken");
  EXPECT_FALSE(Fail()) << "it is open already";
  EXPECT_FALSE(breaker_.Success(now_)) << "late results do not close it";
  EXPECT_FALSE(breaker_.Advance(breaker_.reopens() - Duration(1)));
}

TEST_F(CircuitBreakerTest, ATrialClosesItOrOpensItForLonger) {
  Open();
  const Duration first = Wait();
  EXPECT_GE(first, seconds(1));
  EXPECT_LE(first, milliseconds(1250));
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  EXPECT_TRUE(Fail()) << "one is enough";
  const Duration second = Wait();
  EXPECT_GE(second, seconds(2));
  EXPECT_TRUE(Fail());
  Wait();
  EXPECT_TRUE(Fail());
  EXPECT_LE(Wait(), milliseconds(6250)) << "at most 5 s and jitter";
  EXPECT_TRUE(breaker_.Success(now_));
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.reason(), "");
}

TEST_F(CircuitBreakerTest, PausesAreShortAgainAfterAGoodTime) {
  Open();
  Wait();
  Fail();
  Wait();
  breaker_.Success(now_);
  now_ += seconds(61);
  Open();
  EXPECT_LE(Wait(), milliseconds(1250));
}

// CASES 1.59: a worker that dies every 5 s.
TEST_F(CircuitBreakerTest, FlappingOpensItAndARestartDoesNot) {
  EXPECT_FALSE(Lose());
  now_ += seconds(120);
  int losses = 1;
  EXPECT_FALSE(Lose());
  do {
    ++losses;
    now_ += seconds(5);
    breaker_.Success(now_);
  } while (!Lose());
  EXPECT_EQ(losses, 4);
  Wait();
  breaker_.Success(now_);
  now_ += seconds(5);
  EXPECT_TRUE(Lose()) << "it is still flapping";
}

TEST_F(CircuitBreakerTest, RareLossesNeverOpenIt) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Lose()) << i;
    now_ += seconds(20);
  }
}

TEST_F(CircuitBreakerTest, ALossOnTrialOpensIt) {
  Open();
  Wait();
  EXPECT_TRUE(Lose());
}

}  // namespace
}  // namespace baton::router
