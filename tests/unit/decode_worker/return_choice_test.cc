#include "decode_worker/return_choice.h"

#include <gtest/gtest.h>

#include <random>

namespace baton::decode {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr uint64_t kMegabyte = 1'000'000;
constexpr Duration kLongest = seconds(1);

class ReturnChoiceTest : public testing::Test {
 protected:
  double Predicted(uint64_t bytes) const {
    return choice.PushSeconds(bytes, now);
  }
  ReturnChoice choice{PreemptedReturn::kAuto, kLongest};
  MonotonicTime now{std::chrono::hours(1)};
};

TEST_F(ReturnChoiceTest, HopesForTheBestAtFirst) {
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.01, now));
  EXPECT_FALSE(choice.Pushes(kMegabyte, 0.001, now))
      << "computed sooner than asked for";
}

TEST_F(ReturnChoiceTest, WithoutACostModelAPushIsTried) {
  choice.Failed(seconds(100), now);
  EXPECT_TRUE(choice.Pushes(1000 * kMegabyte, std::nullopt, now));
}

TEST_F(ReturnChoiceTest, TheOtherModesDoNotCompare) {
  const ReturnChoice never(PreemptedReturn::kRecompute, kLongest);
  EXPECT_FALSE(never.Pushes(1, 1000.0, now));
  EXPECT_FALSE(never.Pushes(1, std::nullopt, now));
  const ReturnChoice always(PreemptedReturn::kPush, kLongest);
  EXPECT_TRUE(always.Pushes(1000 * kMegabyte, 0.0, now));
}

TEST_F(ReturnChoiceTest, LearnsLatencyAndBandwidth) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const uint64_t bytes = kMegabyte * (random() % 2 == 0 ? 1 : 100);
    const double took = 0.004 + 2e-9 * static_cast<double>(bytes);
    now += milliseconds(10);
    choice.Pushed(bytes,
                  std::chrono::duration_cast<Duration>(
                      std::chrono::duration<double>(took)),
                  now);
  }
  EXPECT_NEAR(Predicted(0), 0.004, 0.001);
  EXPECT_NEAR(Predicted(100 * kMegabyte), 0.204, 0.02);
  EXPECT_NEAR(Predicted(10 * kMegabyte), 0.024, 0.005) << "never seen";
}

TEST_F(ReturnChoiceTest, OneOddPushChangesLittle) {
  const double before = Predicted(kMegabyte);
  choice.Pushed(kMegabyte, std::chrono::hours(1), now);
  EXPECT_LT(Predicted(kMegabyte), 3 * before);
  choice.Pushed(kMegabyte, Duration(1), now);
  EXPECT_GT(Predicted(kMegabyte), before / 3);
}

TEST_F(ReturnChoiceTest, WhatWasSlowIsTriedAgainSometime) {
  for (int i = 0; i < 20; ++i) choice.Pushed(kMegabyte, milliseconds(300), now);
  EXPECT_NEAR(Predicted(kMegabyte), 0.3, 0.03);
  EXPECT_FALSE(choice.Pushes(kMegabyte, 0.1, now));
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.4, now));
  now += minutes(3);
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.1, now));
}

TEST_F(ReturnChoiceTest, EveryFailureInARowMakesItLessLikely) {
  const double recompute[] = {0.1, 0.4, 1, 3, 7, 20};
  for (const double price : recompute) {
    EXPECT_TRUE(choice.Pushes(kMegabyte, price, now)) << price;
    choice.Failed(milliseconds(200), now);
    EXPECT_FALSE(choice.Pushes(kMegabyte, price / 2, now)) << price;
  }
  now += minutes(10);
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.1, now));
}

TEST_F(ReturnChoiceTest, ASuccessForgivesMost) {
  for (int i = 0; i < 4; ++i) choice.Failed(milliseconds(200), now);
  EXPECT_FALSE(choice.Pushes(kMegabyte, 1.0, now));
  choice.Pushed(kMegabyte, milliseconds(2), now);
  EXPECT_TRUE(choice.Pushes(kMegabyte, 1.0, now));
}

TEST_F(ReturnChoiceTest, ARefusalThatComesAtOnceCostsNextToNothing) {
  for (int i = 0; i < 10; ++i) choice.Refused(microseconds(500), now);
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.01, now));
  for (int i = 0; i < 100; ++i) choice.Refused(milliseconds(5), now);
  EXPECT_FALSE(choice.Pushes(kMegabyte, 0.1, now));
}

TEST_F(ReturnChoiceTest, PatienceFollowsThePredictionWithinBounds) {
  EXPECT_EQ(choice.Patience(0, now), ReturnChoice::kLeastPatience);
  EXPECT_NEAR(Seconds(choice.Patience(200 * kMegabyte, now)),
              4 * Predicted(200 * kMegabyte), 1e-6);
  EXPECT_EQ(choice.Patience(uint64_t{1} << 50, now), kLongest);
  const ReturnChoice hasty(PreemptedReturn::kAuto, milliseconds(50));
  EXPECT_EQ(hasty.Patience(0, now), milliseconds(50));
}

TEST_F(ReturnChoiceTest, WhatCannotComeInTimeIsNotAskedFor) {
  EXPECT_FALSE(choice.Pushes(uint64_t{1} << 40, 1e6, now));
}

TEST_F(ReturnChoiceTest, StaysBoundedWhateverHappens) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bytes = random() >> (random() % 64);
    const Duration took(static_cast<int64_t>(random() >> (random() % 64)));
    if (random() % 3 == 0) {
      choice.Failed(took, now);
    } else if (random() % 3 == 0) {
      choice.Refused(took, now);
    } else {
      choice.Pushed(bytes, took, now);
    }
    now += Duration(random() % 100'000'000);
    if (random() % 50 == 0) now -= milliseconds(20);
    const double push = Predicted(1 << 20);
    ASSERT_GT(push, 1e-7);
    ASSERT_LT(push, 10);
    ASSERT_LE(choice.Patience(bytes, now), kLongest);
  }
  now += minutes(30);
  EXPECT_TRUE(choice.Pushes(kMegabyte, 0.01, now));
}

}  // namespace
}  // namespace baton::decode
