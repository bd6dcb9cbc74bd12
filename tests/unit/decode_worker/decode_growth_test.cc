// What happens when blocks run out: who waits, who is preempted, how it comes
// back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Index, token and text by attempt and choice.
using Outputs =
    std::map<std::pair<uint64_t, uint32_t>,
             std::vector<std::tuple<uint32_t, uint32_t, std::string>>>;

DecodeOptions Small(uint32_t blocks) {
  DecodeOptions options = SchedulerHarness::Options();
  options.blocks = blocks;
  options.length_quantile = 0;  // the next token is always the last
  return options;
}

v1::SequenceSpec Spec(uint32_t prompt, uint32_t max_tokens,
                      uint32_t choices = 1, uint32_t priority = 1) {
  v1::SequenceSpec spec = toy::MakeSpec(prompt, max_tokens, choices);
  spec.set_priority(priority);
  return spec;
}

void Collect(const std::vector<v1::DecodeEvent>& events, Outputs* outputs) {
  for (const v1::DecodeEvent& event : events) {
    for (const v1::TokenDelta& token : event.tokens().tokens()) {
      (*outputs)[{token.attempt_id(), token.choice()}].emplace_back(
          token.index(), token.token_id(), token.text());
    }
  }
}

Outputs RunToTheEnd(SchedulerHarness& h) {
  Outputs outputs;
  while (h.step.has_value()) {
    h.FinishStep();
    Collect(h.TakeEvents(1), &outputs);
  }
  EXPECT_TRUE(h.AllFree()) << h.ledger().ToString();
  EXPECT_TRUE(h.scheduler.idle());
  return outputs;
}

TEST(DecodeGrowth, TheNewestLosesItsBlocksAndComesBack) {
  SchedulerHarness roomy, tight(Small(8));
  Outputs expected, got;
  for (SchedulerHarness* h : {&roomy, &tight}) {
    h->OpenSession(1);
    h->Serve(1, 1, Spec(30, 60));  // 6 blocks at its end
    h->Serve(1, 2, Spec(30, 60));
    (h == &roomy ? expected : got) = RunToTheEnd(*h);
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ((got.at({2, 0}).size()), 60u);
  EXPECT_EQ(roomy.scheduler.counters().preemptions, 0u);
  EXPECT_EQ(tight.scheduler.counters().preemptions, 1u);
  EXPECT_EQ(tight.scheduler.counters().recomputed_tokens, 63u)
      << "the first enters its fifth block, the second is one row behind";
  EXPECT_EQ(tight.scheduler.counters().prefill_tokens, 60u);
}

TEST(DecodeGrowth, LowPriorityGivesWayToWhatCameLater) {
  SchedulerHarness h(Small(8));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 60, 1, /*priority=*/2));
  h.Serve(1, 2, Spec(30, 60, 1, /*priority=*/0));
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  for (const PlannedSpan& span : h.step->spans) {
    EXPECT_EQ(span.blocks.size(), 5u) << "attempt 2 goes on alone";
  }
  std::vector<uint64_t> done;
  h.TakeEvents(1);
  while (h.step.has_value()) {
    h.FinishStep();
    for (const auto& event : h.TakeEvents(1)) {
      if (event.has_done()) done.push_back(event.done().attempt_id());
    }
  }
  EXPECT_THAT(done, testing::ElementsAre(2, 1));
  EXPECT_TRUE(h.AllFree());
}

TEST(DecodeGrowth, NothingNewIsAcceptedWhileSomebodyWaits) {
  SchedulerHarness h(Small(8));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 60));
  h.Serve(1, 2, Spec(30, 60));
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  h.TakeEvents(1);
  h.Serve(1, 3, Spec(1, 1));
  const auto events = h.TakeEvents(1);
  EXPECT_EQ(events.back().refused().reason(),
            "blocks: 1 attempts wait for some");
  EXPECT_EQ(h.scheduler.Load().spare_blocks(), 0u);
  EXPECT_EQ(h.scheduler.Load().waiting_sequences(), 1u);
  h.FinishAllSteps();
  EXPECT_EQ(h.scheduler.Load().spare_blocks(), 8u);
}

// Nobody ranks lower than who wants a block: it keeps what it has until
// another ends.
TEST(DecodeGrowth, WhoRanksLastWaitsWhereItIs) {
  SchedulerHarness h(Small(8));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(63, 17));  // 5 blocks for 16 steps
  h.Serve(1, 2, Spec(40, 30));  // wants the fourth after 8
  int alone = 0;
  while (h.scheduler.counters().done == 0) {
    h.FinishStep();
    if (h.scheduler.Load().spare_blocks() == 0) ++alone;
  }
  EXPECT_GT(alone, 4);
  const Outputs outputs = RunToTheEnd(h);
  EXPECT_EQ(std::get<0>(outputs.at({2, 0}).back()), 29u);
  EXPECT_EQ(h.scheduler.counters().preemptions, 0u);
}

TEST(DecodeGrowth, ChoicesComeBackTogetherAndShareThePromptAgain) {
  for (uint32_t prompt : {32u, 40u}) {
    SchedulerHarness roomy, tight(Small(10));
    Outputs expected, got;
    for (SchedulerHarness* h : {&roomy, &tight}) {
      h->OpenSession(1);
      h->Serve(1, 1, Spec(30, 100));
      h->Serve(1, 2, Spec(prompt, 24, 3));
      (h == &roomy ? expected : got) = RunToTheEnd(*h);
    }
    EXPECT_EQ(got, expected);
    EXPECT_EQ(tight.scheduler.counters().preemptions, 1u);
    EXPECT_GT(tight.scheduler.counters().recomputed_tokens, prompt);
  }
}

TEST(DecodeGrowth, ForcedPreemptionsAreCountedAndChangeNothing) {
  for (uint32_t choices : {1u, 4u}) {
    for (uint32_t times : {1u, 5u}) {
      DecodeOptions options = SchedulerHarness::Options();
      SchedulerHarness undisturbed(options);
      options.forced_preemptions = options.max_preemptions = times;
      SchedulerHarness h(options);
      Outputs expected, got;
      for (SchedulerHarness* one : {&undisturbed, &h}) {
        one->OpenSession(1);
        one->Serve(1, 1, Spec(20, 40, choices));
        (one == &h ? got : expected) = RunToTheEnd(*one);
      }
      EXPECT_EQ(got, expected);
      EXPECT_EQ(h.scheduler.counters().preemptions, times);
    }
  }
}

// Two that would push each other out for ever: after max_preemptions the one
// keeps all that it can ever need.
TEST(DecodeGrowth, WhoWasPreemptedOftenEnoughHoldsAllItNeeds) {
  DecodeOptions options = Small(16);
  options.max_preemptions = options.forced_preemptions = 1;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(20, 100, 2));  // 1 + 2 x 7 blocks
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 15u);
  RunToTheEnd(h);
  EXPECT_EQ(h.scheduler.counters().preemptions, 1u);
}

class DecodePreempted : public testing::Test {
 protected:
  DecodePreempted() : h(Small(8)) {
    h.OpenSession(1);
    h.Serve(1, 1, Spec(30, 60));
    h.Serve(1, 2, Spec(30, 60), /*deadline_ms=*/5000);
    while (h.scheduler.counters().preemptions == 0) h.FinishStep();
    h.TakeEvents(1);
  }
  // The first one ends, the second is being computed again.
  void Recomputing() {
    h.Release(1, 1);
    h.FinishStep();
    ASSERT_EQ(h.step->spans.size(), 1u);
    ASSERT_EQ(h.step->spans[0].first_position, 0u);
  }
  void ExpectOver() {
    h.FinishAllSteps();
    EXPECT_TRUE(h.AllFree());
    EXPECT_TRUE(h.scheduler.idle());
  }
  SchedulerHarness h;
};

TEST_F(DecodePreempted, CancelWhileWaiting) {
  h.Release(1, 2);
  h.Serve(1, 3, Spec(1, 1));
  h.FinishStep();
  h.Serve(1, 4, Spec(1, 1));
  h.FinishStep();
  EXPECT_FALSE(h.TakeEvents(1).back().has_refused()) << "nobody waits";
  ExpectOver();
}

TEST_F(DecodePreempted, CancelWhileComputedAgain) {
  Recomputing();
  h.Release(1, 2);
  h.FinishStep();
  EXPECT_FALSE(h.step.has_value());
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodePreempted, DeadlinePassesWhileWaiting) {
  h.now += std::chrono::seconds(6);
  h.Feed(Tick{});
  const auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].failed().attempt_id(), 2u);
  EXPECT_EQ(events[0].failed().code(),
            static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  ExpectOver();
}

TEST_F(DecodePreempted, SessionIsLostWhileWaitingAndWhileComputedAgain) {
  Recomputing();
  h.Feed(SessionLost{SessionId(1)});
  h.FinishStep();
  EXPECT_TRUE(h.AllFree());
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(DecodePreempted, NanWhileComputedAgainFailsTheAttempt) {
  Recomputing();
  h.FailStep(absl::InternalError("NaN"));
  const auto events = h.TakeEvents(1);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().failed().attempt_id(), 2u);
  EXPECT_TRUE(h.AllFree());
}

TEST_F(DecodePreempted, DrainFinishesIt) {
  h.Feed(DrainStarted{});
  h.FinishAllSteps();
  EXPECT_EQ(h.TakeEvents(1).back().done().attempt_id(), 2u);
  EXPECT_TRUE(h.scheduler.idle());
}

TEST_F(DecodePreempted, ShutDownEndsIt) {
  h.Feed(ShutDown{});
  EXPECT_THAT(h.TakeEvents(1), SizeIs(2));
  ExpectOver();
}

TEST(DecodeGrowth, APrefillGivesWayToo) {
  DecodeOptions options = Small(8);
  options.budget.max_tokens = 2;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(14, 80));
  h.Serve(1, 2, Spec(90, 2));  // 6 blocks and 45 steps
  const Outputs outputs = RunToTheEnd(h);
  EXPECT_EQ((outputs.at({1, 0}).size()), 80u);
  EXPECT_EQ((outputs.at({2, 0}).size()), 2u);
  EXPECT_EQ(h.scheduler.counters().preemptions, 1u);
  EXPECT_EQ(h.scheduler.counters().prefill_tokens, 104u);
  EXPECT_GT(h.scheduler.counters().recomputed_tokens, 10u);
}

// Growth comes first; the router replays the landing's request.
TEST(DecodeGrowth, ALandingOfLowerRankGivesWay) {
  SchedulerHarness h(Small(8));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 60));
  h.FinishStep();
  h.Reserve(1, 2, Spec(80, 3));  // 5 blocks that a transfer may write
  Outputs outputs;
  h.FinishAllSteps();
  EXPECT_EQ(h.ledger().free, 0u);
  EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 5u);
  const auto events = h.TakeEvents(1);
  const v1::AttemptFailure& failed = events.back().failed();
  EXPECT_EQ(failed.attempt_id(), 2u);
  EXPECT_EQ(failed.cause(), v1::FAILURE_CAUSE_LOAD);
  EXPECT_TRUE(failed.retryable());
  EXPECT_EQ(h.scheduler.counters().landings_given_up, 1u);
  Collect(events, &outputs);
  EXPECT_TRUE(h.landings.at(h.OnlyLanding()).cancelled);
  h.CloseLanding(h.OnlyLanding());
  for (const auto& [choice, tokens] : RunToTheEnd(h)) {
    for (const auto& token : tokens) outputs[choice].push_back(token);
  }
  EXPECT_EQ((outputs.at({1, 0}).size()), 60u);
  EXPECT_EQ(h.scheduler.counters().preemptions, 0u);
}

TEST(DecodeGrowth, RunningAttemptsGiveWayBeforeLandings) {
  SchedulerHarness h(Small(10));
  h.OpenSession(1);
  h.Serve(1, 1, Spec(30, 60));
  h.Serve(1, 2, Spec(30, 60));
  h.FinishStep();
  h.Reserve(1, 3, Spec(60, 5));  // 4 blocks
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  EXPECT_EQ(h.scheduler.counters().landings_given_up, 0u);
  EXPECT_FALSE(h.landings.at(h.OnlyLanding()).cancelled);
}

TEST(DecodeGrowth, EvidenceLetsMoreIn) {
  DecodeOptions options = SchedulerHarness::Options();
  options.blocks = 32;
  SchedulerHarness h(options);
  h.OpenSession(1);
  auto ends_at_once = [](const DrawRequest&) { return toy::kEnd; };
  const auto accepted = [&](uint64_t first) {
    for (uint64_t i = first; i < first + 8; ++i) h.Serve(1, i, Spec(16, 200));
    int refused = 0;
    for (const auto& event : h.TakeEvents(1)) refused += event.has_refused();
    return 8 - refused;
  };
  EXPECT_EQ(accepted(1), 2) << "14 blocks each, 31 allowed";
  h.FinishAllSteps(ends_at_once);
  for (uint64_t i = 10; i < 60; ++i) {
    h.Serve(1, i, Spec(16, 200));
    h.FinishAllSteps(ends_at_once);
  }
  h.TakeEvents(1);
  EXPECT_EQ(accepted(100), 8) << "answers have been one token long";
  RunToTheEnd(h);
}

TEST(DecodeGrowth, AStaticBatchTakesBackItsOwnOnly) {
  DecodeOptions options = Small(8);
  options.batching = Batching::kStatic;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(14, 80));
  h.Serve(1, 2, Spec(70, 10));  // waits for the batch to end, with 5 blocks
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  while (h.scheduler.counters().done == 0) {
    ASSERT_EQ(h.step->spans.size(), 1u);
    h.FinishStep();
  }
  const Outputs outputs = RunToTheEnd(h);
  EXPECT_EQ((outputs.at({2, 0}).size()), 10u);
}

// It waits for the batch, which must not wait for its blocks.
TEST(DecodeGrowth, WhoWaitsForAStaticBatchGivesWayWhateverItsPriority) {
  DecodeOptions options = Small(8);
  options.batching = Batching::kStatic;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(14, 80, 1, /*priority=*/2));
  h.Serve(1, 2, Spec(70, 10, 1, /*priority=*/0));
  const Outputs outputs = RunToTheEnd(h);
  EXPECT_GE(h.scheduler.counters().preemptions, 1u);
  EXPECT_EQ((outputs.at({1, 0}).size()), 80u);
  EXPECT_EQ((outputs.at({2, 0}).size()), 10u);
}

// The pool was too small for both; newcomers would be in its way when the batch
// has ended.
TEST(DecodeGrowth, WhoWaitsForAStaticBatchWithoutBlocksKeepsNewcomersOut) {
  DecodeOptions options = Small(8);
  options.batching = Batching::kStatic;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(14, 80));
  h.Serve(1, 2, Spec(70, 10));
  while (h.scheduler.counters().preemptions == 0) h.FinishStep();
  EXPECT_EQ(h.scheduler.waiting(), 1u);
  EXPECT_GE(h.ledger().free, 1u);
  h.Granted(1);
  EXPECT_EQ(h.loads[SessionId(1)].spare_blocks(), 0u);
  h.TakeEvents(1);
  h.Serve(1, 3, Spec(10, 2));
  auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].refused().reason(), "blocks: 1 attempts wait for some");
  while (h.scheduler.counters().done == 0) h.FinishStep();
  EXPECT_EQ(h.scheduler.waiting(), 0u) << "its turn has come";
  h.TakeEvents(1);
  h.Serve(1, 3, Spec(10, 2));
  EXPECT_THAT(h.TakeEvents(1), SizeIs(0)) << "accepted";
  const Outputs outputs = RunToTheEnd(h);
  EXPECT_EQ((outputs.at({2, 0}).size()), 10u);
  EXPECT_EQ((outputs.at({3, 0}).size()), 2u);
}

TEST(DecodeForecast, ALoadSaysWhatAnswersArePlannedWith) {
  DecodeOptions options = SchedulerHarness::Options();
  options.length_quantile = 0.75;
  SchedulerHarness h(options);
  h.OpenSession(1);
  const auto planned = [&] {
    h.Granted(1);
    return h.loads[SessionId(1)].expected_answer_tokens();
  };
  EXPECT_EQ(planned(), std::numeric_limits<uint32_t>::max())
      << "nothing is known: all that is asked for";
  for (int i = 0; i < 40; ++i) {
    h.Serve(1, 1 + i, Spec(20, 100));
    h.FinishAllSteps([](const DrawRequest& draw) {
      return draw.position == 25 ? toy::kEnd : toy::AnyToken(draw);
    });
  }
  EXPECT_EQ(planned(), 6u);
}

TEST(DecodeGrowth, NobodyGivesWayInVain) {
  DecodeOptions options = Small(20);
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, Spec(32, 60, 4, 1));  // 6 blocks, then 4 more at once
  h.Serve(1, 2, Spec(20, 25, 1, 2));  // 3 blocks
  h.Reserve(1, 3, Spec(176, 5, 1, /*priority=*/0));
  ASSERT_EQ(h.landings.size(), 1u);
  h.TakeEvents(1);
  while (h.scheduler.waiting() == 0 && h.step.has_value()) h.FinishStep();
  EXPECT_EQ(h.scheduler.waiting(), 1u);
  EXPECT_EQ(h.scheduler.counters().preemptions, 0u);
  ASSERT_TRUE(h.step.has_value()) << "the second goes on";
  while (h.scheduler.counters().done == 0 && h.step.has_value()) {
    h.FinishStep();
  }
  EXPECT_EQ(h.scheduler.counters().done, 1u);
  h.Verified(h.OnlyLanding(), {9});
  RunToTheEnd(h);
  EXPECT_EQ(h.scheduler.counters().done, 3u);
}

}  // namespace
}  // namespace baton::decode
