// Every phase of a request x everything that can go wrong in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

enum class Phase {
  kQueued,
  kReserving,
  kPrefilling,
  kOvertaken,  // D decodes already, P's first token is still on its way
  kTransferring,
  kDecoding,
  kAlonePrefilling,
  kAloneDecoding,
};
constexpr Phase kPairPhases[] = {Phase::kQueued,       Phase::kReserving,
                                 Phase::kPrefilling,   Phase::kOvertaken,
                                 Phase::kTransferring, Phase::kDecoding};
constexpr Phase kPrefillHolds[] = {Phase::kPrefilling, Phase::kTransferring};
constexpr Phase kPlacedPhases[] = {
    Phase::kReserving,    Phase::kPrefilling, Phase::kOvertaken,
    Phase::kTransferring, Phase::kDecoding,   Phase::kAlonePrefilling,
    Phase::kAloneDecoding};
constexpr Phase kAllPhases[] = {Phase::kQueued,          Phase::kReserving,
                                Phase::kPrefilling,      Phase::kOvertaken,
                                Phase::kTransferring,    Phase::kDecoding,
                                Phase::kAlonePrefilling, Phase::kAloneDecoding};

std::string NameOf(const ::testing::TestParamInfo<Phase>& info) {
  static constexpr const char* kNames[] = {
      "Queued",       "Reserving", "Prefilling",      "Overtaken",
      "Transferring", "Decoding",  "AlonePrefilling", "AloneDecoding"};
  return kNames[static_cast<int>(info.param)];
}

class PhaseTest : public ::testing::TestWithParam<Phase> {
 protected:
  bool alone() const {
    return GetParam() == Phase::kAlonePrefilling ||
           GetParam() == Phase::kAloneDecoding;
  }
  bool prefill_holds() const {
    return GetParam() == Phase::kPrefilling ||
           GetParam() == Phase::kTransferring;
  }
  bool decode_holds() const { return GetParam() != Phase::kQueued; }

  // One request in the phase of the test, alone with p_ (0) and d_ (1).
  void Reach(Duration timeout = seconds(60)) {
    if (!alone()) {
      p_ = driver_.AddPrefill("p", GetParam() == Phase::kQueued ? 0 : 1 << 20);
    } else {
      p_ = WorkerIndex(99);
    }
    d_ = driver_.AddDecode("d");
    id_ = driver_.Ask(10, 1, 8, timeout);
    attempt_ = driver_.last_attempt();
    switch (GetParam()) {
      case Phase::kQueued:
      case Phase::kReserving:
      case Phase::kAlonePrefilling:
        break;
      case Phase::kPrefilling:
        driver_.Reserved(d_, attempt_);
        break;
      case Phase::kOvertaken:
        driver_.Reserved(d_, attempt_);
        driver_.Landed(d_, attempt_);
        driver_.Tokens(d_, attempt_, {{0, 1, 101}});
        break;
      case Phase::kTransferring:
        driver_.Reserved(d_, attempt_);
        driver_.FirstTokens(p_, attempt_, {{0, 0, 100}});
        break;
      case Phase::kDecoding:
        driver_.RunToDecode(id_, p_, d_);
        driver_.Tokens(d_, attempt_, {{0, 1, 101}});
        break;
      case Phase::kAloneDecoding:
        driver_.Tokens(d_, attempt_, {{0, 0, 100}, {0, 1, 101}});
        break;
    }
    driver_.TakeLog();
  }

  std::vector<uint32_t> TokensSoFar() const {
    const auto& tokens = driver_.answer(id_).tokens;
    return tokens.contains(0) ? tokens.at(0) : std::vector<uint32_t>{};
  }
  std::vector<std::string> LettingGo(bool prefill, bool decode) const {
    std::vector<std::string> lines;
    if (prefill) {
      lines.push_back(StrCat("cancel ", p_.value(), " #", attempt_.value()));
    }
    if (decode) {
      lines.push_back(StrCat("release ", d_.value(), " #", attempt_.value()));
    }
    return lines;
  }
  std::vector<std::string> LettingGoAnd(bool prefill, bool decode,
                                        std::string last) const {
    std::vector<std::string> lines = LettingGo(prefill, decode);
    lines.push_back(std::move(last));
    return lines;
  }
  // The choice goes on at the second pair with everything it had.
  void ExpectReplayAt(WorkerIndex p, WorkerIndex d) {
    const std::vector<uint32_t> before = TokensSoFar();
    EXPECT_GT(driver_.last_attempt(), attempt_);
    ASSERT_EQ(driver_.last_spec().choices_size(), 1);
    const auto& generated =
        driver_.last_spec().choices(0).generated_token_ids();
    EXPECT_EQ(std::vector<uint32_t>(generated.begin(), generated.end()),
              before);
    driver_.RunToDecode(id_, p, d);
    const auto next = static_cast<uint32_t>(before.size() + 1);
    driver_.Tokens(d, driver_.last_attempt(), {{0, next, 500, true}});
    driver_.Done(d, driver_.last_attempt());
    ASSERT_TRUE(driver_.answer(id_).status.has_value());
    EXPECT_TRUE(driver_.answer(id_).status->ok());
    EXPECT_EQ(driver_.answer(id_).usage.completion_tokens(), before.size() + 2);
  }
  uint32_t ReplaysSeen() const { return driver_.answer(id_).served.replays(); }
  bool Started() const {
    return GetParam() != Phase::kQueued && GetParam() != Phase::kReserving;
  }

  CoreDriver driver_;
  WorkerIndex p_, d_;
  RequestId id_;
  AttemptId attempt_;
};

class PairPhaseTest : public PhaseTest {};
class PrefillHoldsTest : public PhaseTest {};
class PlacedPhaseTest : public PhaseTest {};
INSTANTIATE_TEST_SUITE_P(In, PhaseTest, ::testing::ValuesIn(kAllPhases),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(In, PairPhaseTest, ::testing::ValuesIn(kPairPhases),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(In, PrefillHoldsTest,
                         ::testing::ValuesIn(kPrefillHolds), NameOf);
INSTANTIATE_TEST_SUITE_P(In, PlacedPhaseTest,
                         ::testing::ValuesIn(kPlacedPhases), NameOf);

TEST_P(PhaseTest, Cancel) {
  Reach();
  driver_.Cancel(id_);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(
                  prefill_holds(), decode_holds(), "finish 1: CANCELLED")));
  EXPECT_EQ(driver_.core().counters().queued_work, 0u);
  EXPECT_EQ(driver_.core().counters().active_requests, 0u);
}

TEST_P(PhaseTest, Deadline) {
  Reach(seconds(5));
  driver_.Advance(milliseconds(4999));
  EXPECT_THAT(driver_.TakeLog(), IsEmpty());
  driver_.Advance(milliseconds(1));
  EXPECT_THAT(driver_.TakeLog(), UnorderedElementsAreArray(LettingGoAnd(
                                     prefill_holds(), decode_holds(),
                                     "finish 1: DEADLINE_EXCEEDED")));
}

TEST_P(PhaseTest, DecodeSessionLost) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  const WorkerIndex d2 = driver_.AddDecode("d2");
  if (GetParam() == Phase::kQueued) {
    driver_.TakeLog();
    driver_.Down(d_);
    EXPECT_THAT(driver_.TakeLog(), IsEmpty());
    return;
  }
  driver_.Down(d_);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(
                  prefill_holds(), false,
                  StrCat("reserve ", d2.value(), " #", attempt_.value() + 1))));
  ExpectReplayAt(p2, d2);
  EXPECT_EQ(ReplaysSeen(), Started() ? 1u : 0u);
}

TEST_P(PhaseTest, OnlyDecodeWorkerLost) {
  Reach();
  driver_.Down(d_);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(prefill_holds(), false,
                                                     "finish 1: UNAVAILABLE")));
  if (!TokensSoFar().empty()) {
    EXPECT_THAT(driver_.answer(id_).status->message(),
                HasSubstr(StrCat("(after ", TokensSoFar().size(), " tokens)")));
  }
}

TEST_P(PairPhaseTest, PrefillSessionLost) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2", 0);
  driver_.TakeLog();
  driver_.Down(p_);
  if (GetParam() == Phase::kDecoding || GetParam() == Phase::kQueued) {
    EXPECT_THAT(driver_.TakeLog(), IsEmpty());
    return;
  }
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGo(false, true)));
  driver_.Credit(p2, 1);
  ExpectReplayAt(p2, d_);
}

TEST_P(PlacedPhaseTest, RetryableFailureAtDecode) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  const WorkerIndex d2 = driver_.AddDecode("d2");
  driver_.Failed(d_, attempt_, /*retryable=*/true);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(
                  prefill_holds(), false,
                  StrCat("reserve ", d2.value(), " #", attempt_.value() + 1))));
  ExpectReplayAt(p2, d2);
  EXPECT_EQ(ReplaysSeen(), 1u);
}

TEST_P(PrefillHoldsTest, RetryableFailureAtPrefill) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  const WorkerIndex d2 = driver_.AddDecode("d2");
  driver_.Failed(p_, attempt_, /*retryable=*/true);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(
                  false, true,
                  StrCat("reserve ", d2.value(), " #", attempt_.value() + 1))));
  ExpectReplayAt(p2, d2);
}

TEST_P(PlacedPhaseTest, FinalFailure) {
  Reach();
  driver_.AddPrefill("p2");
  driver_.AddDecode("d2");
  driver_.Failed(d_, attempt_, /*retryable=*/false,
                 absl::StatusCode::kInternal);
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(
                  LettingGoAnd(prefill_holds(), false, "finish 1: INTERNAL")));
  EXPECT_THAT(driver_.answer(id_).status->message(), HasSubstr("broken [d"));
}

TEST_P(PlacedPhaseTest, SilenceClosesTheSessionAndReplays) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  const WorkerIndex d2 = driver_.AddDecode("d2");
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  for (int i = 0; i < 12; ++i) {
    driver_.Advance(seconds(1));
    driver_.Load(p2, load);
    driver_.Load(d2, load);
  }
  EXPECT_THAT(driver_.TakeLog(),
              Contains(StrCat("close ", d_.value(), ": silent for 10 s")));
  EXPECT_FALSE(driver_.answer(id_).status.has_value());
  ExpectReplayAt(p2, d2);
}

TEST_P(PlacedPhaseTest, AttemptWithoutProgressIsReplayed) {
  Reach();
  const WorkerIndex p2 = driver_.AddPrefill("p2");
  const WorkerIndex d2 = driver_.AddDecode("d2");
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  for (int i = 0; i < 10; ++i) {
    driver_.Advance(seconds(1));
    for (WorkerIndex worker : {d_, p2, d2}) driver_.Load(worker, load);
    if (!alone()) driver_.Load(p_, load);
  }
  EXPECT_THAT(driver_.TakeLog(),
              UnorderedElementsAreArray(LettingGoAnd(
                  prefill_holds(), true,
                  StrCat("reserve ", d2.value(), " #", attempt_.value() + 1))));
  ExpectReplayAt(p2, d2);
}

class FailureTest : public ::testing::Test {
 protected:
  CoreDriver driver_;
  WorkerIndex p_ = driver_.AddPrefill("p");
  WorkerIndex d_ = driver_.AddDecode("d");
};

TEST_F(FailureTest, ReplaysAreBounded) {
  const RequestId id = driver_.Ask();
  for (int i = 0; i < 3; ++i) {
    driver_.Reserved(d_, driver_.last_attempt());
    driver_.Failed(p_, driver_.last_attempt(), true);
    ASSERT_FALSE(driver_.answer(id).status.has_value()) << i;
  }
  driver_.Reserved(d_, driver_.last_attempt());
  driver_.Failed(p_, driver_.last_attempt(), true);
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_EQ(driver_.answer(id).status->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(driver_.answer(id).status->message(),
              AllOf(HasSubstr("failed 4 times"), HasSubstr("broken")));
}

TEST_F(FailureTest, ChoicesAreReplayedOneByOne) {
  const RequestId id = driver_.Ask(10, 3);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  driver_.FirstTokens(p_, a, {{0, 0, 1}, {1, 0, 2, true}, {2, 0, 3}});
  driver_.Landed(d_, a);
  driver_.Tokens(d_, a, {{0, 1, 4}});
  const WorkerIndex d2 = driver_.AddDecode("d2");
  driver_.TakeLog();
  driver_.Down(d_);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 2 #2", "reserve 2 #3"));
  const AttemptId first(2), second(3);
  driver_.Reserved(d2, first);
  driver_.Reserved(d2, second);
  driver_.FirstTokens(p_, second, {{2, 1, 6, true}});
  driver_.FirstTokens(p_, first, {{0, 2, 5, true}});
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_TRUE(driver_.answer(id).status->ok());
  EXPECT_EQ(driver_.answer(id).tokens.at(0), (std::vector<uint32_t>{1, 4, 5}));
  EXPECT_EQ(driver_.answer(id).tokens.at(2), (std::vector<uint32_t>{3, 6}));
  EXPECT_EQ(driver_.answer(id).served.replays(), 2u);
  EXPECT_EQ(driver_.answer(id).served.decode_worker(), "d2");
}

TEST_F(FailureTest, ChoicesWithoutTokensStayTogether) {
  driver_.Ask(10, 3);
  driver_.Reserved(d_, driver_.last_attempt());
  driver_.Failed(p_, driver_.last_attempt(), true);
  EXPECT_EQ(driver_.last_attempt(), AttemptId(2));
  EXPECT_EQ(driver_.last_spec().choices_size(), 3);
}

TEST_F(FailureTest, LateTokensOfAnOldAttemptAreDropped) {
  const RequestId id = driver_.Ask();
  const AttemptId old = driver_.RunToDecode(id, p_, d_);
  driver_.Failed(p_, old, true);
  EXPECT_EQ(driver_.last_attempt(), old)
      << "P's failure after the hand-over does not matter";
  driver_.AddDecode("d2");
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1 << 20);
  for (int i = 0; i < 10; ++i) {
    driver_.Advance(seconds(1));
    for (uint32_t worker : {0, 1, 2}) driver_.Load(WorkerIndex(worker), load);
  }
  ASSERT_GT(driver_.last_attempt(), old);
  const uint64_t stale = driver_.stale();
  driver_.Tokens(d_, old, {{0, 1, 666}});
  driver_.Done(d_, old);
  EXPECT_EQ(driver_.stale(), stale + 2);
  EXPECT_EQ(driver_.answer(id).tokens.at(0), (std::vector<uint32_t>{100}));
}

TEST_F(FailureTest, ReservationThatNobodyWaitsForIsReleased) {
  driver_.Ask();
  const AttemptId old = driver_.last_attempt();
  driver_.Refused(d_, old, 1000);
  driver_.TakeLog();
  driver_.Reserved(d_, old);
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre(StrCat("release ", d_.value(), " #", old.value())));
}

TEST_F(FailureTest, NonsenseFromWorkersFailsTheAttemptOnly) {
  struct Case {
    const char* what;
    std::vector<DeltaSpec> tokens;
  };
  const Case cases[] = {{"gap", {{0, 5, 8}}},
                        {"foreign choice", {{9, 1, 8}}},
                        {"outside the vocabulary", {{0, 1, kVocabulary}}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const RequestId id = driver_.Ask();
    const AttemptId a = driver_.RunToDecode(id, p_, d_);
    driver_.TakeLog();
    driver_.Tokens(d_, a, c.tokens);
    EXPECT_THAT(driver_.TakeLog(),
                ElementsAre(StrCat("release 1 #", a.value()),
                            StrCat("reserve 1 #", a.value() + 1)));
    driver_.Cancel(id);
  }
}

TEST_F(FailureTest, PrefillMustAnswerForEveryChoice) {
  const RequestId id = driver_.Ask(10, 2);
  driver_.Reserved(d_, driver_.last_attempt());
  driver_.TakeLog();
  driver_.FirstTokens(p_, driver_.last_attempt(), {{0, 0, 1}});
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("emit 1: c0 1", "cancel 0 #1", "release 1 #1",
                          "reserve 1 #2", "reserve 1 #3"));
  EXPECT_FALSE(driver_.answer(id).status.has_value());
}

TEST_F(FailureTest, DoneBeforeTheEndIsAFailure) {
  const RequestId id = driver_.Ask();
  const AttemptId a = driver_.RunToDecode(id, p_, d_);
  driver_.TakeLog();
  driver_.Done(d_, a);
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #2"));
}

TEST_F(FailureTest, TokensThatOvertakeAreBounded) {
  const RequestId id = driver_.Ask(10, 1, /*max_tokens=*/4);
  const AttemptId a = driver_.last_attempt();
  driver_.Reserved(d_, a);
  for (uint32_t i = 0; i < 4; ++i) driver_.Tokens(d_, a, {{0, i, 1}});
  EXPECT_EQ(driver_.core().counters().replays, 0u);
  driver_.Tokens(d_, a, {{0, 4, 1}});
  EXPECT_EQ(driver_.core().counters().replays, 1u);
  EXPECT_FALSE(driver_.answer(id).status.has_value());
}

TEST_F(FailureTest, SequenceGapClosesTheSession) {
  const RequestId id = driver_.Ask();
  driver_.TakeLog();
  v1::DecodeEvent event;
  event.set_sequence(99);
  event.mutable_load();
  driver_.Handle(DecodeMessage{d_, event});
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("close 1: sequence: events lost or repeated (got 99, "
                          "allowed 3)",
                          "finish 1: UNAVAILABLE"));
  EXPECT_FALSE(driver_.answer(id).status->ok());
  driver_.Handle(DecodeMessage{d_, event});
  EXPECT_EQ(driver_.stale(), 1u) << "nothing counts after the close";
}

TEST_F(FailureTest, SecondHelloAndWrongHelloCloseTheSession) {
  v1::PrefillEvent hello;
  hello.set_sequence(3);
  *hello.mutable_hello() = CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL);
  driver_.Handle(PrefillMessage{p_, hello});
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("close 0: hello: sent twice"));
  v1::WorkerHello other = CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL);
  other.set_protocol(9);
  driver_.Up(p_, other);
  EXPECT_THAT(
      driver_.TakeLog(),
      ElementsAre("close 0: protocol: not supported (got 9, allowed 1)"));
}

TEST_F(FailureTest, NewSessionVoidsTheOldOne) {
  const RequestId id = driver_.Ask();
  driver_.RunToDecode(id, p_, d_);
  driver_.TakeLog();
  driver_.Up(d_, CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE));
  EXPECT_THAT(driver_.TakeLog(), ElementsAre("reserve 1 #2"));
}

TEST_F(FailureTest, TerminateEndsEverythingOnce) {
  const RequestId first = driver_.Ask();
  driver_.RunToDecode(first, p_, d_);
  const RequestId second = driver_.Ask();
  driver_.TakeLog();
  driver_.Handle(Terminate{absl::UnavailableError("router: shutting down")});
  EXPECT_THAT(driver_.TakeLog(),
              ElementsAre("release 1 #1", "finish 1: UNAVAILABLE",
                          "release 1 #2", "finish 2: UNAVAILABLE"));
  EXPECT_EQ(driver_.answer(second).status->message(), "router: shutting down");
}

}  // namespace
}  // namespace baton::router
