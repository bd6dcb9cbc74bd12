// Preempted attempts whose blocks a holder pushes once more, or does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/cost_model/cost_model.h"
#include "common/tokens/prefix_hash.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Tokens by attempt and choice.
using Outputs = std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>>;

DecodeOptions Preempting(uint32_t times) {
  DecodeOptions options = SchedulerHarness::Options();
  options.preempted_return = PreemptedReturn::kPush;
  options.forced_preemptions = times;
  return options;
}

class FetchHarness {
 public:
  explicit FetchHarness(DecodeOptions options) : h(std::move(options)) {
    h.OpenSession(1);
  }

  // The first attempt was handed over and has lost its blocks after one step.
  void Preempt(uint32_t prompt, uint32_t choices = 1,
               uint32_t deadline_ms = 60000) {
    v1::SequenceSpec spec = toy::MakeSpec(prompt, /*max_tokens=*/20, choices);
    spec.set_prefix_salt("salt");
    h.Reserve(1, 1, spec, deadline_ms);
    h.Verified(h.OnlyLanding(), std::vector<TokenId>(choices, 9));
    Collect();
    FinishStep();
    ASSERT_EQ(counters().preemptions, 1u);
  }
  void FinishStep() {
    h.FinishStep();
    Collect();
  }
  void FinishAllSteps() {
    while (h.step.has_value()) FinishStep();
  }
  void Collect() {
    for (v1::DecodeEvent& event : h.TakeEvents(1)) {
      for (const v1::TokenDelta& token : event.tokens().tokens()) {
        outputs[{token.attempt_id(), token.choice()}].push_back(
            token.token_id());
      }
      if (event.has_push_wanted()) wanted.push_back(event.push_wanted());
      if (event.has_failed()) failed.push_back(event.failed());
    }
  }
  // The one landing, of the fetch that runs.
  LandingId Landing() const { return h.OnlyLanding(); }
  const DecodeCounters& counters() const { return h.scheduler.counters(); }

  // All is as if nobody had been preempted.
  void ExpectUndisturbed(uint32_t prompt, uint32_t choices = 1) {
    FetchHarness other(SchedulerHarness::Options());
    v1::SequenceSpec spec = toy::MakeSpec(prompt, 20, choices);
    other.h.Reserve(1, 1, spec);
    other.h.Verified(other.Landing(), std::vector<TokenId>(choices, 9));
    other.FinishAllSteps();
    EXPECT_EQ(outputs, other.outputs);
    EXPECT_THAT(outputs, SizeIs(choices));
    ExpectEnd();
    EXPECT_EQ(counters().done, 1u);
    EXPECT_THAT(failed, IsEmpty());
  }
  void ExpectEnd() {
    EXPECT_TRUE(h.scheduler.idle());
    EXPECT_TRUE(h.AllFree()) << h.ledger().ToString();
  }

  SchedulerHarness h;
  Outputs outputs;
  std::vector<v1::PushWanted> wanted;
  std::vector<v1::AttemptFailure> failed;
};

class DecodeFetch : public testing::Test, public FetchHarness {
 protected:
  DecodeFetch() : FetchHarness(Preempting(1)) {}
};

TEST_F(DecodeFetch, AsksForTheWholeBlocksOfTheContext) {
  Preempt(40);
  ASSERT_THAT(wanted, SizeIs(1));
  EXPECT_EQ(wanted[0].attempt_id(), 1u);
  EXPECT_EQ(wanted[0].ticket().landing_id(), Landing().value());
  EXPECT_EQ(wanted[0].ticket().token_count(), 32u);
  EXPECT_EQ(wanted[0].deadline_ms(), 200u);
  const v1::SequenceSpec spec = toy::MakeSpec(40, 1);
  const std::vector<TokenId> prompt(spec.prompt_token_ids().begin(),
                                    spec.prompt_token_ids().end());
  const PrefixHash hash =
      HashPrefixes(PrefixSeed("salt", std::string(32, 'f')), prompt).at(1);
  EXPECT_EQ(wanted[0].prefix_hash(),
            std::string(hash.digest.begin(), hash.digest.end()));
  EXPECT_EQ(h.landings.at(Landing()).timeout, std::chrono::milliseconds(200));
  EXPECT_EQ(h.ledger()[BlockUse::kLanding], 2u);
  EXPECT_EQ(h.ledger()[BlockUse::kRunning], 1u);
  EXPECT_FALSE(h.step.has_value());
  EXPECT_EQ(h.scheduler.fetching(), 1u);
  EXPECT_EQ(h.scheduler.waiting(), 0u);
}

TEST_F(DecodeFetch, OnlyTheRestIsComputedAgain) {
  Preempt(40);
  h.Pushed(Landing());
  ASSERT_THAT(h.step->spans, SizeIs(1));
  EXPECT_EQ(h.step->spans[0].first_position, 32u);
  EXPECT_THAT(h.step->spans[0].tokens, SizeIs(9));
  FinishAllSteps();
  ExpectUndisturbed(40);
  EXPECT_EQ(counters().recomputed_tokens, 9u);
  EXPECT_EQ(counters().pushed_returns, 1u);
  EXPECT_EQ(counters().recomputed_returns, 0u);
  EXPECT_EQ(counters().fetched_blocks, 2u);
  EXPECT_EQ(counters().fetched_bytes, 1000u);
}

TEST_F(DecodeFetch, ItsProgressEndsNothing) {
  Preempt(40);
  h.Feed(transfer::LandingProgress{Landing(), 1});
  EXPECT_EQ(h.scheduler.fetching(), 1u);
  h.Pushed(Landing());
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, AFullLastBlockLeavesOwnRowsOnly) {
  Preempt(32);
  h.Pushed(Landing());
  EXPECT_EQ(h.step->spans.at(0).first_position, 32u);
  EXPECT_THAT(h.step->spans.at(0).tokens, SizeIs(1));
  FinishAllSteps();
  ExpectUndisturbed(32);
}

TEST_F(DecodeFetch, ChoicesShareWhatCame) {
  for (const uint32_t prompt : {40u, 32u}) {
    SCOPED_TRACE(prompt);
    FetchHarness one(Preempting(1));
    one.Preempt(prompt, 4);
    EXPECT_EQ(one.h.ledger()[BlockUse::kRunning], 4u) << "one each";
    one.h.Pushed(one.Landing());
    if (prompt == 40) {
      ASSERT_THAT(one.h.step->spans, SizeIs(1)) << "the end of the context";
      EXPECT_EQ(one.h.step->spans[0].first_position, 32u);
      EXPECT_THAT(one.h.step->spans[0].tokens, SizeIs(8));
      one.FinishStep();
      EXPECT_THAT(one.h.step->copies, SizeIs(3));
    }
    ASSERT_THAT(one.h.step->spans, SizeIs(4));
    for (const PlannedSpan& span : one.h.step->spans) {
      EXPECT_EQ(span.first_position, prompt);
      EXPECT_THAT(span.tokens, SizeIs(1));
    }
    one.FinishAllSteps();
    one.ExpectUndisturbed(prompt, 4);
    EXPECT_EQ(one.counters().recomputed_tokens, prompt == 40 ? 12u : 4u);
  }
}

// Preempted before its first step: nothing is left to compute.
TEST(DecodeFetchReady, AFullLastBlockAloneIsAll) {
  DecodeOptions options = SchedulerHarness::Options();
  options.preempted_return = PreemptedReturn::kPush;
  options.blocks = 6;
  options.length_quantile = 0;
  SchedulerHarness h(options);
  h.OpenSession(1);
  h.Serve(1, 1, toy::MakeSpec(30, 50));
  h.FinishStep();
  h.Reserve(1, 2, toy::MakeSpec(32, 10));
  ASSERT_THAT(h.landings, SizeIs(1));
  while (h.step->spans[0].first_position < 63) h.FinishStep();
  h.Verified(h.OnlyLanding(), {9});
  ASSERT_EQ(h.ledger().free, 0u);
  h.FinishStep();
  ASSERT_EQ(h.scheduler.counters().preemptions, 1u);
  while (h.step.has_value()) h.FinishStep();
  ASSERT_EQ(h.scheduler.fetching(), 1u);
  h.Pushed(h.OnlyLanding());
  ASSERT_THAT(h.step->spans, SizeIs(1));
  EXPECT_EQ(h.step->spans[0].first_position, 32u);
  EXPECT_THAT(h.step->spans[0].draws, SizeIs(1)) << "a decode row";
  h.FinishAllSteps();
  EXPECT_EQ(h.scheduler.counters().recomputed_tokens, 0u);
  EXPECT_EQ(h.scheduler.counters().done, 2u);
  EXPECT_TRUE(h.AllFree());
}

class DecodeFetchTwice : public testing::Test, public FetchHarness {
 protected:
  DecodeFetchTwice() : FetchHarness(Preempting(2)) {}
  void ExpectComputedFromTheFirstRow() {
    ASSERT_TRUE(h.step.has_value());
    EXPECT_EQ(h.step->spans.at(0).first_position, 0u);
    EXPECT_EQ(h.ledger()[BlockUse::kRunning], 3u) << "in the same blocks";
    EXPECT_EQ(h.ledger().free, 61u);
  }
  // Its end was told; nothing may touch the blocks until it is over.
  void ExpectQuarantine() {
    EXPECT_EQ(h.ledger()[BlockUse::kQuarantine], 2u);
    EXPECT_FALSE(h.step.has_value());
    EXPECT_EQ(h.scheduler.fetching(), 0u);
  }
};

TEST_F(DecodeFetchTwice, WhatIsGoneIsComputedAgainAndNotAskedTwice) {
  Preempt(40);
  h.RefusePush(1, 1, Landing(), /*gone=*/true);
  EXPECT_TRUE(h.landings.at(Landing()).cancelled);
  ExpectQuarantine();
  h.CloseLanding(Landing());
  ExpectComputedFromTheFirstRow();
  FinishAllSteps();
  EXPECT_EQ(counters().preemptions, 2u);
  EXPECT_THAT(wanted, SizeIs(1));
  EXPECT_EQ(counters().refused_fetches, 1u);
  EXPECT_EQ(counters().failed_fetches, 0u);
  EXPECT_EQ(counters().recomputed_returns, 2u);
  EXPECT_EQ(counters().recomputed_tokens, 41u + 42u);
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetchTwice, WhoCouldNotPushOnceIsAskedTheNextTime) {
  Preempt(40);
  h.RefusePush(1, 1, Landing());
  ExpectQuarantine();
  h.CloseLanding(Landing());
  ExpectComputedFromTheFirstRow();
  FinishStep();
  FinishStep();
  FinishStep();
  ASSERT_THAT(wanted, SizeIs(2)) << "preempted again";
  EXPECT_EQ(counters().refused_fetches, 1u);
  h.Pushed(Landing());
  FinishAllSteps();
  EXPECT_EQ(counters().pushed_returns, 1u);
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetchTwice, AFailureIsComputedAgain) {
  Preempt(40);
  h.Fail(Landing());
  EXPECT_FALSE(h.landings.at(Landing()).cancelled);
  ExpectQuarantine();
  h.CloseLanding(Landing());
  ExpectComputedFromTheFirstRow();
  EXPECT_EQ(counters().failed_fetches, 1u);
  EXPECT_EQ(counters().transfer_failures, 0u) << "no answer was lost by it";
  FinishStep();
  FinishStep();
  FinishStep();
  ASSERT_THAT(wanted, SizeIs(2)) << "preempted again";
  h.Pushed(Landing());
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetchTwice, ALandingThatIsClosedIsComputedAgain) {
  Preempt(40);
  h.CloseLanding(Landing());
  ExpectComputedFromTheFirstRow();
  EXPECT_EQ(counters().failed_fetches, 1u);
}

TEST_F(DecodeFetchTwice, NoLandingCanBeOpened) {
  h.auto_open = false;
  v1::SequenceSpec spec = toy::MakeSpec(40, 20);
  h.Reserve(1, 1, spec);
  h.Open();
  h.Verified(Landing(), {9});
  h.FinishStep();
  ASSERT_THAT(h.opening, SizeIs(1));
  h.Open(absl::ResourceExhaustedError("landings"));
  ExpectComputedFromTheFirstRow();
  EXPECT_EQ(counters().failed_fetches, 1u);
  EXPECT_EQ(counters().recomputed_returns, 1u);
}

TEST(DecodeFetchChoice, TimeLostForALandingThatCannotOpenCounts) {
  for (const bool opens : {true, false}) {
    DecodeOptions options = Preempting(2);
    options.preempted_return = PreemptedReturn::kAuto;
    std::vector<CostModel::Probe> probes;
    for (StepShape& step : CostModel::Probes(64, 4096)) {
      probes.push_back({std::move(step), 0.1});
    }
    options.costs = CostModel(probes);
    SchedulerHarness h(options);
    h.auto_open = false;
    h.OpenSession(1);
    h.Reserve(1, 1, toy::MakeSpec(40, 20));
    h.Open();
    h.Verified(h.OnlyLanding(), {9});
    h.FinishStep();
    ASSERT_THAT(h.opening, SizeIs(1));
    if (opens) {
      h.Open();
      h.Pushed(h.OnlyLanding());
    } else {
      h.now += std::chrono::seconds(5);
      h.Open(absl::ResourceExhaustedError("landings"));
    }
    while (h.scheduler.counters().preemptions < 2) h.FinishStep();
    EXPECT_THAT(h.opening, SizeIs(opens)) << "computed again sooner";
  }
}

// Whoever pushes for a hand-over instead of what was asked for.
TEST_F(DecodeFetchTwice, ASealWithContentsIsAFailure) {
  Preempt(40);
  h.Verified(Landing(), {11}, /*index=*/2);
  ExpectComputedFromTheFirstRow();
  EXPECT_EQ(counters().failed_fetches, 1u);
  EXPECT_EQ(counters().fetched_blocks, 0u);
  FinishStep();
  FinishStep();
  FinishStep();
  h.Pushed(Landing());
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetchTwice, WhatArrivesAfterTheRefusalIsTaken) {
  Preempt(40);
  const LandingId landing = Landing();
  h.RefusePush(1, 1, landing, /*gone=*/true);
  h.Pushed(landing);
  ASSERT_TRUE(h.step.has_value());
  EXPECT_EQ(h.step->spans[0].first_position, 32u);
  EXPECT_EQ(counters().pushed_returns, 1u);
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, OtherRefusalsAreCountedAndChangeNothing) {
  h.OpenSession(2);
  Preempt(40);
  const LandingId landing = Landing();
  const uint64_t stale = counters().stale_messages;
  h.RefusePush(1, 1, LandingId(landing.value() + 1));
  h.RefusePush(1, 1, LandingId(landing.value() - 1));
  h.RefusePush(1, 2, landing);
  h.RefusePush(2, 1, landing);
  EXPECT_EQ(counters().stale_messages, stale + 4);
  EXPECT_EQ(h.scheduler.fetching(), 1u);
  h.Pushed(landing);
  h.RefusePush(1, 1, landing);
  EXPECT_EQ(counters().stale_messages, stale + 5);
  FinishAllSteps();
  h.RefusePush(1, 1, landing);
  EXPECT_EQ(counters().stale_messages, stale + 6);
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, ASecondRefusalIsStale) {
  Preempt(40);
  const uint64_t stale = counters().stale_messages;
  h.RefusePush(1, 1, Landing());
  h.RefusePush(1, 1, Landing());
  EXPECT_EQ(counters().stale_messages, stale + 1);
  EXPECT_EQ(counters().refused_fetches, 1u);
  h.CloseLanding(Landing());
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, EventsOfALandingThatIsOverAreStale) {
  Preempt(40);
  const LandingId landing = Landing();
  h.Pushed(landing);
  const uint64_t stale = counters().stale_messages;
  h.Feed(transfer::LandingVerified{landing, {}, 1000, 2, {}});
  h.Feed(transfer::LandingFailed{landing, absl::DataLossError("late")});
  h.Feed(transfer::LandingClosed{landing});
  EXPECT_EQ(counters().stale_messages, stale + 3);
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, ADrainWaitsForIt) {
  Preempt(40);
  h.Feed(DrainStarted{});
  EXPECT_EQ(h.scheduler.fetching(), 1u);
  h.Pushed(Landing());
  FinishAllSteps();
  ExpectUndisturbed(40);
}

TEST_F(DecodeFetch, IsNotGivenMoreTimeThanTheAttemptHas) {
  Preempt(40, 1, /*deadline_ms=*/70);
  EXPECT_EQ(wanted.at(0).deadline_ms(), 70u);
  EXPECT_EQ(h.landings.at(Landing()).timeout, std::chrono::milliseconds(70));
}

TEST_F(DecodeFetch, NobodyHoldsWhatWasReadHere) {
  h.Serve(1, 1, toy::MakeSpec(40, 20));
  FinishAllSteps();
  EXPECT_EQ(counters().preemptions, 1u);
  EXPECT_THAT(wanted, IsEmpty());
  EXPECT_EQ(counters().recomputed_returns, 1u);
}

TEST_F(DecodeFetch, LessThanABlockIsNotAskedFor) {
  Preempt(15);
  EXPECT_THAT(wanted, IsEmpty());
  FinishAllSteps();
  ExpectUndisturbed(15);
}

}  // namespace
}  // namespace baton::decode
