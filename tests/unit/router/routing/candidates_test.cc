#include "router/routing/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/router/routing/worker_view_builder.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int kAlone = -1;

std::vector<std::pair<int, int>> Places(const std::vector<WorkerView*>& workers,
                                        const PlacementRequest& request,
                                        const PlacementRules& rules = {}) {
  std::vector<std::pair<int, int>> places;
  for (const Candidate& place : CandidatesFor(
           request, {workers.data(), workers.size()}, rules, MonotonicTime{})) {
    places.emplace_back(place.prefill == nullptr
                            ? kAlone
                            : static_cast<int>(place.prefill->index.value()),
                        static_cast<int>(place.decode->index.value()));
  }
  return places;
}

class CandidatesTest : public ::testing::Test {
 protected:
  WorkerView p0_ = MakePrefillView(0);
  WorkerView p1_ = MakePrefillView(1);
  WorkerView d2_ = MakeDecodeView(2);
  WorkerView d3_ = MakeDecodeView(3);
  PlacementRequest request_{.prefill_tokens = 100, .context_tokens = 200};
};

TEST_F(CandidatesTest, EveryPair) {
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(0, 2), Pair(1, 2), Pair(0, 3), Pair(1, 3)));
}

TEST_F(CandidatesTest, OnlyReadyWorkers) {
  p0_.state = WorkerState::kDraining;
  d3_.state = WorkerState::kIncompatible;
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(1, 2)));
  d2_.state = WorkerState::kDown;
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_), IsEmpty());
}

TEST_F(CandidatesTest, FingerprintsNeverMix) {
  p0_.hello.set_fingerprint(std::string(32, 'x'));
  d3_.hello.set_fingerprint(std::string(32, 'x'));
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(1, 2), Pair(0, 3)));
}

TEST_F(CandidatesTest, TransportsNeverMix) {
  p0_.hello.add_transports("ucx");
  p1_.hello.add_transports("grpc");
  d2_.hello.add_transports("ucx");
  d2_.hello.add_transports("grpc");
  d3_.hello.add_transports("grpc");
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(0, 2), Pair(1, 2), Pair(1, 3)));
  EXPECT_THAT(Places({&p0_, &d3_}, request_), ElementsAre(Pair(kAlone, 3)));
  const WorkerView* workers[] = {&p0_, &d3_};
  EXPECT_EQ(CandidatesFor(request_, workers, {}, MonotonicTime{})[0].reason,
            "no prefill worker with a common transport");
}

TEST_F(CandidatesTest, WhoCannotBePairedIsToldWhy) {
  p0_.hello.add_transports("ucx");
  d2_.hello.add_transports("grpc");
  const WorkerView* workers[] = {&p0_, &p1_, &d2_};
  EXPECT_EQ(WhyUnpaired(p0_, workers),
            "no decode worker has a data transport of this one (ucx)");
  EXPECT_EQ(WhyUnpaired(d2_, workers), "") << "p1 names none";
  p1_.hello.set_fingerprint(std::string(32, 'x'));
  EXPECT_EQ(WhyUnpaired(p1_, workers), "no decode worker of its fingerprint");
  EXPECT_EQ(WhyUnpaired(d2_, workers),
            "no prefill worker has a data transport of this one (grpc)");
  d2_.state = WorkerState::kDown;
  EXPECT_EQ(WhyUnpaired(p0_, workers), "");
}

TEST_F(CandidatesTest, DecodeServesAloneOnlyWithoutPrefillOfItsFingerprint) {
  EXPECT_THAT(Places({&d2_}, request_), ElementsAre(Pair(kAlone, 2)));
  p0_.hello.set_fingerprint(std::string(32, 'x'));
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(kAlone, 2)));
  EXPECT_THAT(Places({&p0_, &d2_}, request_, {.prefill_expected = true}),
              IsEmpty());
}

TEST_F(CandidatesTest, PrefillWithoutCreditIsWaitedFor) {
  p0_.credit.Start(1, p0_.hello);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
}

TEST_F(CandidatesTest, AggregatedWorkerNeedsItsOwnCredit) {
  d2_.hello.set_disaggregation(v1::DISAGGREGATION_NEVER);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(kAlone, 2)));
  d2_.credit.Start(1, d2_.hello);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
}

TEST_F(CandidatesTest, AutoServesShortPromptsAlone) {
  d2_.hello.set_disaggregation(v1::DISAGGREGATION_AUTO);
  d2_.hello.set_local_prefill_max_tokens(100);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(kAlone, 2)));
  request_.pair = true;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  request_.pair = false;
  request_.prefill_tokens = 101;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
}

TEST_F(CandidatesTest, ShortIsWhatFitsAStepOfTheDecodeWorker) {
  d2_.hello.set_disaggregation(v1::DISAGGREGATION_AUTO);
  d2_.hello.set_local_prefill_max_tokens(100);
  request_.prefill_tokens = 60;
  d2_.load.set_step_prompt_tokens(59);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  d2_.load.set_step_prompt_tokens(60);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(kAlone, 2)));
}

TEST_F(CandidatesTest, FailedPlacesOnlyWithoutAlternative) {
  request_.avoid = {WorkerIndex(0), WorkerIndex(2)};
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(1, 3)));
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  p1_.credit.Start(1, p1_.hello);
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_), IsEmpty())
      << "the better pair is waited for";
}

TEST_F(CandidatesTest, RefusalsHoldUntilTheirTime) {
  request_.refusals = {{WorkerIndex(2), MonotonicTime(Duration(1))}};
  EXPECT_THAT(Places({&p0_, &d2_, &d3_}, request_), ElementsAre(Pair(0, 3)));
  request_.refusals = {{WorkerIndex(2), MonotonicTime{}}};
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
}

TEST_F(CandidatesTest, AFullBatchIsNotAsked) {
  d2_.hello.set_max_sequences(4);
  d2_.outstanding_attempts = 1;
  d2_.outstanding_choices = 3;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  request_.choices = 2;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  EXPECT_THAT(Places({&p0_, &d2_, &d3_}, request_), ElementsAre(Pair(0, 3)));
}

TEST_F(CandidatesTest, ABatchThatWouldMissItsTargetIsNotAsked) {
  d2_.load.set_sequence_limit(2);
  d2_.outstanding_choices = 2;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  d2_.outstanding_choices = 1;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  request_.choices = 4;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  d2_.outstanding_choices = 0;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)))
      << "alone, any request goes that the worker takes at all";
}

TEST_F(CandidatesTest, KnowsWhoOnlyLacksPlaces) {
  const std::vector<const WorkerView*> workers = {&p0_, &d2_, &d3_};
  request_.choices = 4;
  d2_.outstanding_choices = 5;
  d3_.outstanding_choices = 5;
  EXPECT_TRUE(WaitsForPlaces(request_, workers)) << "8 each";
  d3_.outstanding_choices = 4;
  EXPECT_FALSE(WaitsForPlaces(request_, workers));
  d3_.state = WorkerState::kDown;
  EXPECT_TRUE(WaitsForPlaces(request_, workers));
  request_.choices = 1;
  d2_.outstanding_choices = 8;
  EXPECT_FALSE(WaitsForPlaces(request_, workers)) << "as everybody";
}

TEST_F(CandidatesTest, ShortPromptsDoNotWaitForTheCreditOfLongOnes) {
  p0_.hello.set_step_token_budget(100);
  p0_.load.set_granted_short_prefill_tokens(150);
  p0_.credit.Start(101, p0_.hello);
  request_.prefill_tokens = 101;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  request_.prefill_tokens = 100;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  p0_.credit.Start(100, p0_.hello);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  p0_.credit.Start(50, p0_.hello);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  p0_.credit.Undo(50, p0_.hello);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
}

TEST_F(CandidatesTest, AWorkerWhoseAnswersAreLateGetsFewerAtOnce) {
  d2_.hello.set_max_sequences(64);
  d2_.outstanding_choices = 8;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  d2_.concurrency.Late(16, {}, {});
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
  d2_.outstanding_choices = 7;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
}

TEST_F(CandidatesTest, QuietWorkersGetNothingNew) {
  const PlacementRules rules{.quiet_after = Duration(5)};
  p0_.last_event = d3_.last_event = MonotonicTime(Duration(-6));
  p1_.last_event = d2_.last_event = MonotonicTime(Duration(-5));
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_, rules),
              ElementsAre(Pair(1, 2)));
  EXPECT_THAT(Places({&p0_, &d2_}, request_, rules), IsEmpty());
}

TEST_F(CandidatesTest, ContextOfBothMustSuffice) {
  d2_.hello.set_max_context_tokens(199);
  EXPECT_THAT(Places({&p0_, &d2_, &d3_}, request_), ElementsAre(Pair(0, 3)));
  p0_.hello.set_max_context_tokens(99);
  EXPECT_THAT(Places({&p0_, &d3_}, request_), ElementsAre(Pair(kAlone, 3)));
}

TEST_F(CandidatesTest, AnAnswerStaysWithItsFingerprint) {
  p0_.hello.set_fingerprint(std::string(32, 'x'));
  d3_.hello.set_fingerprint(std::string(32, 'x'));
  request_.fingerprint = std::string(32, 'x');
  EXPECT_THAT(Places({&p0_, &p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(0, 3)));
  EXPECT_THAT(Places({&p1_, &d2_, &d3_}, request_),
              ElementsAre(Pair(kAlone, 3)));
  EXPECT_THAT(Places({&p0_, &p1_, &d2_}, request_), IsEmpty());
  std::vector<const WorkerView*> others = {&p0_, &p1_, &d2_};
  EXPECT_EQ(ServabilityOf(others, request_), Servability::kNoWorker);
  PlacementRequest anywhere = request_;
  anywhere.fingerprint.clear();
  EXPECT_EQ(ServabilityOf(others, anywhere), Servability::kNow);
  others.push_back(&d3_);
  EXPECT_EQ(ServabilityOf(others, request_), Servability::kNow);
}

TEST_F(CandidatesTest, Servability) {
  const auto of = [&](std::vector<const WorkerView*> workers) {
    return ServabilityOf(workers, request_);
  };
  EXPECT_EQ(of({&p0_}), Servability::kNoWorker);
  EXPECT_EQ(of({&d2_}), Servability::kNow);
  d2_.hello.set_max_context_tokens(199);
  EXPECT_EQ(of({&d2_}), Servability::kContextShort);
  EXPECT_EQ(of({&d2_, &d3_}), Servability::kNow);
}

TEST_F(CandidatesTest, WhatNeverFits) {
  const auto of = [&] { return ServabilityOf({{&d2_}}, request_); };
  request_.kv_blocks = 1001;
  EXPECT_EQ(of(), Servability::kPoolSmall);
  request_.kv_blocks = 1000;
  request_.choices = 9;
  EXPECT_EQ(of(), Servability::kBatchSmall);
  request_.choices = 8;
  EXPECT_EQ(of(), Servability::kNow);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  request_.kv_blocks = 1001;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty());
}

TEST_F(CandidatesTest, PrefillWorkersMustHoldThePrompt) {
  p0_.hello.set_kv_blocks(6);
  EXPECT_THAT(Places({&p0_, &p1_, &d2_}, request_), ElementsAre(Pair(1, 2)));
  p0_.hello.set_kv_blocks(7);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
}

class BrokenWorkerTest : public CandidatesTest {
 protected:
  void Break(WorkerView* worker) {
    worker->breaker.Trip({}, "broken", MonotonicTime{}, &jitter_);
  }
  void Reopen(WorkerView* worker) {
    ASSERT_TRUE(worker->breaker.Advance(worker->breaker.reopens()));
  }
  Jitter jitter_{1};
};

TEST_F(BrokenWorkerTest, GetsNothingWhileItsBreakerIsOpen) {
  Break(&p0_);
  EXPECT_THAT(Places({&p0_, &p1_, &d2_}, request_), ElementsAre(Pair(1, 2)));
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(kAlone, 2)))
      << "as if there were no prefill worker";
  Break(&d2_);
  EXPECT_EQ(ServabilityOf({{&d2_}}, request_), Servability::kNoWorker);
}

TEST_F(BrokenWorkerTest, GetsOneAttemptAtATimeOnTrial) {
  Break(&p0_);
  Reopen(&p0_);
  EXPECT_THAT(Places({&p0_, &d2_}, request_), ElementsAre(Pair(0, 2)));
  p0_.outstanding_attempts = 1;
  EXPECT_THAT(Places({&p0_, &d2_}, request_), IsEmpty())
      << "the trial is waited for";
  EXPECT_EQ(StateName(p0_), "half_open");
  EXPECT_EQ(Detail(p0_, MonotonicTime{}), "broken; on trial");
}

TEST_F(BrokenWorkerTest, IsDescribed) {
  Break(&d2_);
  EXPECT_EQ(StateName(d2_), "circuit_open");
  EXPECT_EQ(Detail(d2_, d2_.breaker.reopens() - std::chrono::seconds(1)),
            "broken; tried again in 1 s");
  d2_.state = WorkerState::kDown;
  d2_.detail = "reset";
  EXPECT_EQ(StateName(d2_), "down");
  EXPECT_EQ(Detail(d2_, MonotonicTime{}), "reset");
}

TEST_F(CandidatesTest, AWorkerThatJustJoinedGetsLittle) {
  d2_.slow_start.Begin(MonotonicTime{}, std::chrono::seconds(10));
  EXPECT_THAT(Places({&p0_, &d2_, &d3_}, request_),
              ElementsAre(Pair(0, 2), Pair(0, 3)));
  d2_.outstanding_attempts = 1;
  EXPECT_THAT(Places({&p0_, &d2_, &d3_}, request_), ElementsAre(Pair(0, 3)));
}

TEST(ExpectedKvBlocksTest, CountsAUsualAnswerAndSharesThePrompt) {
  EXPECT_EQ(ExpectedAnswerTokens({.prefill_tokens = 10, .context_tokens = 30}),
            20u);
  EXPECT_EQ(ExpectedAnswerTokens({.prefill_tokens = 10, .context_tokens = 900}),
            64u);
  EXPECT_EQ(ExpectedAnswerTokens({.prefill_tokens = 10, .context_tokens = 5}),
            0u);
  const WorkerView silent;
  EXPECT_EQ(
      ExpectedKvBlocks({.prefill_tokens = 32, .context_tokens = 33}, silent),
      2u)
      << "the last token's KV is not needed";
  EXPECT_EQ(
      ExpectedKvBlocks({.prefill_tokens = 32, .context_tokens = 34}, silent),
      3u);
  EXPECT_EQ(
      ExpectedKvBlocks(
          {.prefill_tokens = 32, .context_tokens = 34, .choices = 4}, silent),
      2u + 4);
}

TEST(ExpectedKvBlocksTest, IsWhatTheWorkerPlansWithOrMore) {
  const PlacementRequest request = {.prefill_tokens = 16,
                                    .context_tokens = 16 + 1024};
  WorkerView worker;
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 5u);
  worker.load.set_expected_answer_tokens(129);
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 9u);
  worker.load.set_expected_answer_tokens(17);
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 5u) << "it takes risks";
  worker.load.set_expected_answer_tokens(UINT32_MAX);
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 65u) << "up to its limit";
}

TEST(ExpectedKvBlocksTest, AnAnswerThatMayNotEndEarlierIsLonger) {
  PlacementRequest request = {
      .prefill_tokens = 16, .context_tokens = 16 + 1024, .least_tokens = 513};
  WorkerView worker;
  worker.load.set_expected_answer_tokens(17);
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 33u);
  EXPECT_EQ(ExpectedAnswerTokens(request), 513u);
  request.least_tokens = 5000;
  EXPECT_EQ(ExpectedKvBlocks(request, worker), 65u);
}

}  // namespace
}  // namespace baton::router
