// What happens before an attempt starts: queue, credit, refusals, and clusters
// that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WaitingTest, CreditStartsOneMoreWhateverItsSize) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p", 1);
  driver.AddDecode("d");
  driver.Ask(500);
  driver.Ask(10);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #1"));
  driver.Credit(p, 500);
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
  driver.Credit(p, 501);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #2"));
  EXPECT_EQ(driver.core().counters().queued_work, 0u);
}

TEST(WaitingTest, CreditComesBackUntilThePrefillWasCommanded) {
  CoreDriver driver;
  driver.AddPrefill("p", 10);
  const WorkerIndex d = driver.AddDecode("d");
  const RequestId first = driver.Ask(10);
  const RequestId second = driver.Ask(10);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #1"));
  driver.Cancel(first);
  EXPECT_THAT(
      driver.TakeLog(),
      ElementsAre("release 1 #1", "finish 1: CANCELLED", "reserve 1 #2"));
  driver.Reserved(d, driver.last_attempt());
  driver.Ask(10);
  driver.TakeLog();
  driver.Cancel(second);
  EXPECT_THAT(driver.TakeLog(),
              ElementsAre("cancel 0 #2", "release 1 #2", "finish 2: CANCELLED"))
      << "the worker returns this one itself";
}

TEST(PlacesTest, WhoNeedsSeveralAtOnceIsNotOvertakenForEver) {
  CoreDriver driver;
  v1::WorkerHello hello = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  hello.set_disaggregation(v1::DISAGGREGATION_NEVER);
  hello.set_max_sequences(4);
  const WorkerIndex d = driver.AddDecode("d");
  driver.Down(d);
  driver.Up(d, hello);
  driver.Credit(d, 1 << 20);
  std::vector<std::pair<RequestId, AttemptId>> running;
  const auto ask = [&] {
    const RequestId id = driver.Ask();
    running.emplace_back(id, driver.last_attempt());
  };
  for (int i = 0; i < 3; ++i) ask();
  const RequestId wide = driver.Ask(10, 4, 8, seconds(60));
  EXPECT_EQ(driver.core().counters().queued_work, 1u);
  ask();
  EXPECT_EQ(driver.core().counters().queued_work, 1u) << "overtaken";
  driver.Advance(seconds(3));
  driver.Cancel(running.back().first);
  running.pop_back();
  const RequestId narrow = driver.Ask();
  EXPECT_EQ(driver.core().counters().queued_work, 2u)
      << "the place that came free is kept";
  for (const auto& [id, attempt] : running) driver.Cancel(id);
  EXPECT_EQ(driver.core().counters().queued_work, 1u) << "only the narrow one";
  driver.Cancel(wide);
  EXPECT_EQ(driver.core().counters().queued_work, 0u);
  driver.Cancel(narrow);
}

TEST(HealthTest, ReadyOnlyWhileSomethingMoves) {
  CoreDriver driver({.stall_timeout = seconds(1000),
                     .silence_timeout = seconds(1000),
                     .progress_timeout = seconds(15)});
  driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  driver.Advance(seconds(100));
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok()) << "idle is healthy";
  const RequestId request = driver.Ask(10, 1, 8, seconds(600));
  driver.Advance(seconds(14));
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok());
  driver.Advance(seconds(1));
  EXPECT_EQ(driver.core().Ready(driver.now()).message(),
            "no worker makes a step while requests wait");
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(1000);
  driver.Load(d, load);
  EXPECT_FALSE(driver.core().Ready(driver.now()).ok())
      << "to speak is not to move";
  load.set_steps(1);
  driver.Load(d, load);
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok());
  driver.Advance(seconds(15));
  EXPECT_FALSE(driver.core().Ready(driver.now()).ok());
  driver.Reserved(d, driver.last_attempt());
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok());
  driver.Advance(seconds(15));
  EXPECT_FALSE(driver.core().Ready(driver.now()).ok());
  driver.Cancel(request);
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok()) << "nothing waits";
}

TEST(TwinTest, OneProcessUnderTwoAddressesIsUsedOnce) {
  CoreDriver driver;
  driver.AddPrefill("p");
  v1::WorkerHello hello = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  hello.set_worker_epoch(77);
  const WorkerIndex a = driver.AddDecode("d");
  driver.Down(a);
  driver.Up(a, hello);
  const WorkerIndex b(50);
  driver.Handle(WorkerAdded{b, v1::WORKER_ROLE_DECODE, "10.0.0.2:1"});
  driver.TakeLog();
  driver.Up(b, hello);
  EXPECT_THAT(
      driver.TakeLog(),
      ElementsAre("hold 1: the same worker as 10.0.0.2:1, which is used"));
  const auto info = [&](size_t i) { return driver.core().Workers().at(i); };
  EXPECT_EQ(info(1).state(), "duplicate");
  EXPECT_EQ(info(1).detail(), "the same worker as 10.0.0.2:1, which is used");
  EXPECT_EQ(info(2).state(), "ready");
  driver.Handle(SessionDown{a, absl::UnavailableError("fenced")});
  EXPECT_EQ(info(1).detail(), "the same worker as 10.0.0.2:1, which is used");

  // The old address has its turn when the new one is lost.
  driver.Down(b);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("open 1"));
  EXPECT_EQ(info(1).state(), "down");
  driver.Up(a, hello);
  EXPECT_THAT(driver.TakeLog(),
              ElementsAre("hold 50: the same worker as d, which is used"));
  EXPECT_EQ(info(1).state(), "ready");
  EXPECT_EQ(info(2).state(), "duplicate");

  // Nobody is blamed for sessions that were closed in favour of the twin.
  for (int i = 0; i < 20; ++i) {
    const bool second = i % 2 == 0;
    driver.Up(second ? b : a, hello);
    EXPECT_EQ(info(second ? 2 : 1).state(), "ready");
  }
  driver.TakeLog();

  // A third address; then the one in use is removed.
  const WorkerIndex c(51);
  driver.Handle(WorkerAdded{c, v1::WORKER_ROLE_DECODE, "10.0.0.3:1"});
  driver.Up(c, hello);
  EXPECT_THAT(
      driver.TakeLog(),
      ElementsAre("hold 1: the same worker as 10.0.0.3:1, which is used"));
  driver.Handle(WorkerRemoved{c});
  EXPECT_THAT(driver.TakeLog(), ElementsAre("open 1", "open 50"));
}

// Two connections are two orders of arrival: the worker has fenced the older
// session, whichever of them is heard of first.
TEST(TwinTest, TheNewestSessionIsUsedInWhateverOrderTheyAreHeardOf) {
  v1::WorkerHello hello = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  hello.set_worker_epoch(77);
  for (const bool crossed : {false, true}) {
    CoreDriver driver;
    const WorkerIndex a(50), b(51), c(52);
    for (const WorkerIndex worker : {a, b, c}) {
      driver.Handle(WorkerAdded{worker, v1::WORKER_ROLE_DECODE,
                                StrCat("10.0.0.", worker.value(), ":1")});
    }
    driver.TakeLog();
    const auto up = [&](WorkerIndex worker) {
      driver.Up(worker, hello, worker == a ? 101 : 102);
    };
    up(crossed ? b : a);
    up(crossed ? a : b);
    const std::string why = "the same worker as 10.0.0.51:1, which is used";
    EXPECT_THAT(driver.TakeLog(), ElementsAre("hold 50: " + why)) << crossed;
    driver.Handle(SessionDown{a, absl::AbortedError("fenced")});
    driver.Up(c, hello, 100);
    EXPECT_THAT(driver.TakeLog(), ElementsAre("hold 52: " + why)) << crossed;
    std::vector<std::string> states;
    for (const v1::WorkerInfo& info : driver.core().Workers()) {
      states.push_back(info.state());
      EXPECT_EQ(info.detail(), info.state() == "ready" ? "" : why);
    }
    EXPECT_THAT(states, ElementsAre("duplicate", "ready", "duplicate"));

    // The numbers of a session that is over say nothing.
    driver.Down(b);
    EXPECT_THAT(driver.TakeLog(), ElementsAre("open 50", "open 52"));
    driver.Up(a, hello, 99);
    EXPECT_THAT(driver.TakeLog(),
                ElementsAre("hold 51: the same worker as 10.0.0.50:1, which "
                            "is used",
                            "hold 52: the same worker as 10.0.0.50:1, which "
                            "is used"));
  }
}

TEST(TwinTest, OtherProcessesAreNoTwins) {
  CoreDriver driver;
  v1::WorkerHello prefill = CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL);
  v1::WorkerHello decode = CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE);
  const WorkerIndex p = driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  const WorkerIndex e = driver.AddDecode("e");
  for (const WorkerIndex worker : {p, d, e}) driver.Down(worker);
  driver.TakeLog();
  prefill.set_worker_epoch(5);  // both roles in one process
  decode.set_worker_epoch(5);
  driver.Up(p, prefill);
  driver.Up(d, decode);
  decode.set_worker_epoch(6);
  driver.Up(e, decode);
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
}

TEST(WaitingTest, PriorityThenArrival) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p", 0);
  driver.AddDecode("d");
  driver.Ask(10, 1, 8, seconds(60), 2);
  driver.Ask(11, 1, 8, seconds(60), 1);
  driver.Ask(12, 1, 8, seconds(60), 1);
  driver.Ask(13, 1, 8, seconds(60), 0);
  std::vector<int> order;
  for (uint64_t credit : {1, 14, 25, 37}) {
    driver.Credit(p, credit);
    order.push_back(driver.last_spec().prompt_token_ids_size());
  }
  EXPECT_THAT(order, ElementsAre(13, 11, 12, 10));
}

TEST(WaitingTest, RefusedWorkTriesAnotherDecodeWorkerThenWaits) {
  CoreDriver driver;
  driver.AddPrefill("p");
  const WorkerIndex d1 = driver.AddDecode("d1");
  const WorkerIndex d2 = driver.AddDecode("d2");
  const RequestId id = driver.Ask();
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #1"));
  driver.Refused(d1, AttemptId(1), 20);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 2 #2"));
  driver.Refused(d2, AttemptId(2), 50);
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
  driver.Advance(milliseconds(19));
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
  driver.Advance(milliseconds(6));
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #3"));
  driver.Reserved(d1, AttemptId(3));
  driver.FirstTokens(WorkerIndex(0), AttemptId(3), {{0, 0, 7, true}});
  EXPECT_TRUE(driver.answer(id).status->ok());
  EXPECT_EQ(driver.answer(id).served.replays(), 0u)
      << "a refusal is not a replay";
  EXPECT_GE(driver.answer(id).served.queue_ms(), 20);
  EXPECT_LE(driver.answer(id).served.queue_ms(), 25) << "with jitter";
}

TEST(WaitingTest, ARefusedHeadDoesNotBlockOthers) {
  CoreDriver driver;
  driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  driver.Ask(1000);
  driver.Refused(d, driver.last_attempt(), 1000);
  driver.TakeLog();
  driver.Ask(10);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 1 #2"));
}

TEST(WaitingTest, ARefusedServeIsTriedAgain) {
  CoreDriver driver;
  const WorkerIndex d =
      driver.AddDecode("d", v1::DISAGGREGATION_NEVER, /*credit=*/11);
  driver.Ask(10);
  driver.Refused(d, driver.last_attempt(), 0);
  driver.TakeLog();
  driver.Advance(milliseconds(13));
  EXPECT_THAT(driver.TakeLog(), ElementsAre("serve 0 #2"));
  driver.Refused(d, driver.last_attempt(), 0);
  driver.Advance(milliseconds(13));
  EXPECT_THAT(driver.TakeLog(), IsEmpty())
      << "commanded tokens count until the worker returns them";
  driver.Credit(d, 21);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("serve 0 #3"));
}

TEST(WaitingTest, AStoppedDecodeWorkerDoesNotHoldUpTheOthers) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p");
  driver.AddDecode("stopped");
  const WorkerIndex alive = driver.AddDecode("alive");
  driver.Advance(seconds(4));
  driver.Credit(p, 1 << 20);
  driver.Credit(alive, 1 << 20);
  for (int i = 0; i < 4; ++i) driver.Ask();
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 2 #1", "reserve 2 #2",
                                            "reserve 2 #3", "reserve 2 #4"));
}

TEST(WaitingTest, NoDecodeWorkerIsUnavailableAtOnce) {
  CoreDriver driver;
  driver.AddPrefill("p");
  const RequestId id = driver.Ask();
  ASSERT_TRUE(driver.answer(id).status.has_value());
  EXPECT_EQ(driver.answer(id).status->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(driver.answer(id).status->message(),
            "cluster: no decode worker is ready");
  EXPECT_TRUE(RetryDelay(*driver.answer(id).status).has_value());
}

TEST(WaitingTest, UnavailableGraceIsWaited) {
  CoreDriver driver({.unavailable_grace = seconds(2)});
  driver.AddPrefill("p");
  const RequestId lost = driver.Ask();
  driver.Advance(milliseconds(1999));
  EXPECT_FALSE(driver.answer(lost).status.has_value());
  driver.Advance(milliseconds(1));
  EXPECT_EQ(driver.answer(lost).status->code(), absl::StatusCode::kUnavailable);
  const RequestId found = driver.Ask();
  driver.Advance(seconds(1));
  driver.AddDecode("d");
  driver.Advance(seconds(2));
  EXPECT_FALSE(driver.answer(found).status.has_value());
}

TEST(WaitingTest, StartingClusterIsWaitedFor) {
  CoreDriver driver({.startup_grace = seconds(10)});
  driver.Handle(WorkerAdded{WorkerIndex(50), v1::WORKER_ROLE_PREFILL, "p"});
  driver.Handle(WorkerAdded{WorkerIndex(51), v1::WORKER_ROLE_DECODE, "d"});
  EXPECT_FALSE(driver.core().Ready(driver.now()).ok());
  driver.Ask();
  driver.Up(WorkerIndex(51), CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE));
  driver.Credit(WorkerIndex(51), 100);
  EXPECT_THAT(driver.TakeLog(), IsEmpty()) << "prefill is still expected";
  EXPECT_EQ(driver.core().Ready(driver.now()).message(),
            "no prefill worker is ready yet");
  driver.Up(WorkerIndex(50), CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL));
  driver.Credit(WorkerIndex(50), 100);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("reserve 51 #1"));
  EXPECT_TRUE(driver.core().Ready(driver.now()).ok());
}

TEST(WaitingTest, AfterStartupDecodeServesAloneOrRequestsEnd) {
  CoreDriver driver(
      {.silence_timeout = seconds(100), .startup_grace = seconds(10)});
  driver.Handle(WorkerAdded{WorkerIndex(50), v1::WORKER_ROLE_PREFILL, "p"});
  driver.AddDecode("d");
  driver.Ask();
  EXPECT_THAT(driver.TakeLog(), IsEmpty());
  driver.Advance(seconds(10));
  EXPECT_THAT(driver.TakeLog(), ElementsAre("serve 0 #1"));

  CoreDriver empty({.startup_grace = seconds(10)});
  empty.Handle(WorkerAdded{WorkerIndex(51), v1::WORKER_ROLE_DECODE, "d"});
  const RequestId id = empty.Ask();
  empty.Handle(SessionDown{WorkerIndex(51), absl::UnavailableError("refused")});
  EXPECT_FALSE(empty.answer(id).status.has_value())
      << "a failed first connect is still starting";
  empty.Advance(seconds(10));
  EXPECT_EQ(empty.answer(id).status->code(), absl::StatusCode::kUnavailable);
}

TEST(WaitingTest, DrainingWorkersTakeNothingNew) {
  CoreDriver driver;
  driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(100);
  load.set_draining(true);
  const RequestId running = driver.Ask();
  driver.RunToDecode(running, WorkerIndex(0), d);
  driver.Load(d, load);
  const RequestId refused = driver.Ask();
  EXPECT_EQ(driver.answer(refused).status->code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(driver.answer(running).status.has_value());
}

TEST(WaitingTest, DrainingRouterRefusesNewAndFinishesOld) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  const RequestId old = driver.Ask();
  driver.Handle(Drain{});
  EXPECT_EQ(driver.core().Ready(driver.now()).message(), "draining");
  const RequestId late = driver.Ask();
  EXPECT_EQ(driver.answer(late).status->message(), "router: draining");
  driver.Reserved(d, AttemptId(1));
  driver.FirstTokens(p, AttemptId(1), {{0, 0, 1, true}});
  EXPECT_TRUE(driver.answer(old).status->ok());
}

TEST(WaitingTest, ContextOfTheClusterIsNamed) {
  CoreDriver driver;
  driver.AddDecode("d");
  const RequestId id = driver.Ask(2000, 1, 100);
  EXPECT_EQ(driver.answer(id).status->message(),
            "max_tokens: prompt and answer exceed the context of the workers "
            "(got 2100, allowed 2048)");
  EXPECT_EQ(FieldViolations(*driver.answer(id).status).size(), 1u);
}

TEST(WaitingTest, FullQueueAndOldAgeAreResourceExhausted) {
  CoreDriver driver({.admission = {.max_requests = 1, .max_age = seconds(5)},
                     .silence_timeout = seconds(100)});
  driver.AddPrefill("p", 0);
  driver.AddDecode("d");
  const RequestId first = driver.Ask();
  const RequestId second = driver.Ask();
  EXPECT_EQ(driver.answer(second).status->code(),
            absl::StatusCode::kResourceExhausted);
  driver.Advance(seconds(5));
  EXPECT_EQ(driver.answer(first).status->message(),
            "queue: no worker had room within 5 s");
}

TEST(WaitingTest, DeadlineAlreadyPassed) {
  CoreDriver driver;
  driver.AddDecode("d");
  const RequestId id = driver.Ask(10, 1, 8, Duration::zero());
  EXPECT_EQ(driver.answer(id).status->code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(driver.TakeLog(), ElementsAre("finish 1: DEADLINE_EXCEEDED"));
}

TEST(WaitingTest, RemovedWorkersAreForgotten) {
  CoreDriver driver;
  const WorkerIndex p = driver.AddPrefill("p");
  const WorkerIndex d = driver.AddDecode("d");
  const RequestId id = driver.Ask();
  driver.RunToDecode(id, p, d);
  driver.Handle(WorkerRemoved{p});
  EXPECT_FALSE(driver.answer(id).status.has_value());
  EXPECT_EQ(driver.core().Workers().size(), 1u);
  driver.Handle(WorkerRemoved{d});
  EXPECT_EQ(driver.answer(id).status->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(driver.core().Workers().empty());
  driver.Handle(WorkerRemoved{d});
}

TEST(WaitingTest, WorkersAreDescribed) {
  CoreDriver driver;
  driver.AddPrefill("p");
  driver.Handle(WorkerAdded{WorkerIndex(9), v1::WORKER_ROLE_DECODE, "host:9"});
  driver.Handle(SessionDown{WorkerIndex(9), absl::UnavailableError("refused")});
  const auto workers = driver.core().Workers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].state(), "ready");
  EXPECT_EQ(workers[0].hello().worker_id(), "p");
  EXPECT_EQ(workers[1].state(), "connecting");
  EXPECT_EQ(workers[1].address(), "host:9");
  EXPECT_EQ(workers[1].hello().role(), v1::WORKER_ROLE_DECODE);
  EXPECT_EQ(workers[1].detail(), "refused");
}

}  // namespace
}  // namespace baton::router
