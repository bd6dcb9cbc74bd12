// Requests that nothing disturbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FlowTest : public ::testing::Test {
 protected:
  CoreDriver driver_;
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
};

TEST_F(FlowTest, ReserveStartLandDecode) {
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.last_attempt();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #1"));
  driver_.Advance(milliseconds(1));
  driver_.Reserved(d_, a);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("start 0 #1"));
  driver_.Advance(milliseconds(10));
  driver_.FirstTokens(p_, a, {{0, 0, 7}});
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("emit 1: c0 7"))
      << "the first token does not wait for the landing";
  driver_.Advance(milliseconds(2));
  driver_.Landed(d_, a);
  driver_.HandedOver(p_, a);
  driver_.Tokens(d_, a, {{0, 1, 8}, {0, 2, 9}});
  driver_.Advance(milliseconds(30));
  driver_.Tokens(d_, a, {{0, 3, 10, true}});
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("emit 1: c0 8 9", "emit 1: c0 10 end"));
  driver_.Done(d_, a);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("account 1", "finish 1: OK"));

  const auto& answer = driver_.answer(id);
  EXPECT_EQ(answer.usage.prompt_tokens(), 10u);
  EXPECT_EQ(answer.usage.completion_tokens(), 4u);
  EXPECT_EQ(answer.usage.cached_prompt_tokens(), 3u);
  EXPECT_EQ(answer.served.prefill_worker(), "p");
  EXPECT_EQ(answer.served.decode_worker(), "d");
  EXPECT_EQ(answer.served.request_id(), "label-1");
  EXPECT_DOUBLE_EQ(answer.served.queue_ms(), 0);
  EXPECT_DOUBLE_EQ(answer.served.prefill_ms(), 11);
  EXPECT_DOUBLE_EQ(answer.served.transfer_ms(), 2);
  EXPECT_DOUBLE_EQ(answer.served.decode_ms(), 30);
  EXPECT_EQ(answer.served.kv_bytes_moved(), 4096u);
  EXPECT_EQ(answer.served.transport(), "loopback");
  EXPECT_EQ(answer.served.prefill_chunks(), 2u);
  EXPECT_EQ(driver_.stale(), 0u);
  EXPECT_EQ(driver_.core().counters().active_requests, 0u);
}

TEST_F(FlowTest, TheBestAreToldWhenAllHaveEnded) {
  const RequestId id = driver_.AskForBest(2, 3);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 9}, {1, 0, 1}, {2, 0, 6}});
  driver_.Landed(d_, a);
  driver_.HandedOver(p_, a);
  driver_.TakeLog();
  // Means: 5 of choice 0, 7 of choice 1, 4 of choice 2.
  driver_.Tokens(d_, a, {{0, 1, 1, true}});
  driver_.Tokens(d_, a, {{1, 1, 13}});
  driver_.Tokens(d_, a, {{2, 1, 2, true}});
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  driver_.Tokens(d_, a, {{1, 2, 7, true}});
  driver_.Done(d_, a);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("emit 1: c0 6 2 end", "emit 1: c1 9 1 end",
                          "account 1", "finish 1: OK"));
  EXPECT_EQ(driver_.answer(id).usage.completion_tokens(), 7u)
      << "all that were made";
  EXPECT_EQ(driver_.answer(id).held_back, 7u) << "each was counted in time";
}

TEST_F(FlowTest, WhatIsHeldBackOutlivesTheAttemptThatMadeIt) {
  driver_.AskForBest(1, 2);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 5}, {1, 0, 3}});
  driver_.Landed(d_, a);
  driver_.HandedOver(p_, a);
  driver_.Tokens(d_, a, {{0, 1, 5, true}});
  driver_.Failed(d_, a, true);
  driver_.TakeLog();
  const AttemptId b = driver_.last_attempt();
  driver_.Reserved(d_, b);
  driver_.FirstTokens(p_, b, {{1, 1, 4, true}});
  EXPECT_THAT(driver_.TakeLog(),
              ::testing::IsSupersetOf(
                  {"emit 1: c0 3 4 end", "account 1", "finish 1: OK"}));
}

TEST_F(FlowTest, WorkersSeedPrefixesWithTheSaltOfTheTenant) {
  driver_.Ask(10, 1, 8, std::chrono::seconds(60), 1, "acme");
  EXPECT_EQ(driver_.last_spec().prefix_salt(), "salt of acme");
  driver_.Failed(d_, driver_.last_attempt(), true);
  EXPECT_EQ(driver_.last_spec().prefix_salt(), "salt of acme") << "again";
}

TEST_F(FlowTest, EndAtFirstTokenReleasesTheLanding) {
  const RequestId id = driver_.Ask();
  driver_.Reserved(d_, driver_.last_attempt());
  driver_.TakeLog();
  driver_.FirstTokens(p_, driver_.last_attempt(), {{0, 0, 7, true}});
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("emit 1: c0 7 end", "release 1 #1",
                                             "account 1", "finish 1: OK"));
  EXPECT_EQ(driver_.answer(id).served.decode_worker(), "");
}

TEST_F(FlowTest, DecodeMayOvertakeTheFirstToken) {
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.Landed(d_, a);
  driver_.Tokens(d_, a, {{0, 1, 8}});
  driver_.Tokens(d_, a, {{0, 2, 9, true}});
  driver_.Done(d_, a);
  driver_.TakeLog();
  driver_.FirstTokens(p_, a, {{0, 0, 7}});
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("emit 1: c0 7", "emit 1: c0 8", "emit 1: c0 9 end",
                          "account 1", "finish 1: OK"));
  EXPECT_EQ(driver_.answer(id).tokens.at(0), (std::vector<uint32_t>{7, 8, 9}));
}

TEST_F(FlowTest, ChoicesShareTheFirstAttempt) {
  const RequestId id = driver_.Ask(10, 3);
  EXPECT_EQ(driver_.last_spec().choices_size(), 3);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 1}, {1, 0, 2, true}, {2, 0, 3}});
  driver_.Landed(d_, a);
  driver_.Tokens(d_, a, {{0, 1, 4, true}, {2, 1, 5}});
  driver_.Tokens(d_, a, {{2, 2, 6, true}});
  EXPECT_FALSE(driver_.answer(id).status.has_value());
  driver_.Done(d_, a);
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_TRUE(driver_.answer(id).status->ok());
  EXPECT_EQ(driver_.answer(id).usage.completion_tokens(), 6u);
  EXPECT_EQ(driver_.answer(id).finished.size(), 3u);
}

TEST_F(FlowTest, MaxTokensEndsAChoiceEvenIfTheWorkerForgets) {
  const RequestId id = driver_.Ask(10, 1, /*max_tokens=*/2);
  const AttemptId a = driver_.RunToDecode(id, p_, d_);
  driver_.Tokens(d_, a, {{0, 1, 8}});
  EXPECT_EQ(driver_.answer(id).finished.at(0), v1::FINISH_REASON_LENGTH);
}

TEST_F(FlowTest, AnswerWithoutAccountEndsAfterTheClosingTimeout) {
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.RunToDecode(id, p_, d_);
  driver_.Tokens(d_, a, {{0, 1, 8, true}});
  driver_.TakeLog();
  driver_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("release 1 #1", "account 1", "finish 1: OK"));
}

TEST_F(FlowTest, DecodeServesAloneWithoutPrefillWorker) {
  driver_.Down(p_);
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.last_attempt();
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("serve 1 #1"));
  driver_.Tokens(d_, a, {{0, 0, 7}});
  driver_.Tokens(d_, a, {{0, 1, 8, true}});
  driver_.Done(d_, a);
  EXPECT_EQ(driver_.answer(id).served.prefill_worker(), "");
  EXPECT_EQ(driver_.answer(id).served.reason(),
            "no prefill worker, round_robin");
  EXPECT_EQ(driver_.answer(id).usage.cached_prompt_tokens(), 5u);
  EXPECT_DOUBLE_EQ(driver_.answer(id).served.transfer_ms(), 0);
}

TEST_F(FlowTest, LogprobsArePassedOnlyIfAskedFor) {
  ClientRequest request;
  request.id = RequestId(77);
  request.spec.add_prompt_token_ids(1);
  request.spec.set_max_tokens(4);
  request.spec.add_choices();
  request.spec.mutable_sampling()->set_logprobs(true);
  request.received = driver_.now();
  request.deadline = driver_.now() + std::chrono::seconds(1);
  CoreDriver plain;
  RouterCore core({.vocabulary_size = kVocabulary}, MakeRoundRobin(),
                  driver_.now());
  core.Handle(SessionUp{WorkerIndex(1), v1::WORKER_ROLE_DECODE,
                        CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE)},
              driver_.now());
  v1::DecodeEvent load;
  load.set_sequence(2);
  load.mutable_load()->set_granted_prefill_tokens(1);
  core.Handle(DecodeMessage{WorkerIndex(1), load}, driver_.now());
  core.Handle(std::move(request), driver_.now());
  v1::DecodeEvent step;
  step.set_sequence(3);
  v1::TokenDelta* delta = step.mutable_tokens()->add_tokens();
  delta->set_attempt_id(1);
  delta->set_token_id(5);
  delta->set_logprob(-0.5F);
  delta->add_top_logprobs()->set_token_id(6);
  const Actions actions =
      core.Handle(DecodeMessage{WorkerIndex(1), step}, driver_.now());
  ASSERT_EQ(actions.size(), 1u);
  const auto& event = std::get<EmitToClient>(actions[0]).event;
  ASSERT_EQ(event.logprobs_size(), 1);
  EXPECT_EQ(event.logprobs(0).logprob(), -0.5F);
  EXPECT_EQ(event.logprobs(0).top(0).token_id(), 6u);
}

TEST_F(FlowTest, LateAndForeignMessagesAreCountedNoOps) {
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.RunToDecode(id, p_, d_);
  const WorkerIndex other = driver_.AddDecode("other");
  driver_.TakeLog();
  driver_.Reserved(d_, a);
  driver_.Landed(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 50}});
  driver_.Refused(d_, a, 1);
  driver_.Tokens(other, a, {{0, 1, 51}});
  driver_.Tokens(d_, AttemptId(999), {{0, 1, 52}});
  driver_.Tokens(d_, a, {{0, 0, 53}});
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  EXPECT_EQ(driver_.stale(), 7u);
  driver_.Cancel(RequestId(12345));
  EXPECT_EQ(driver_.stale(), 8u);
}

}  // namespace
}  // namespace baton::router
