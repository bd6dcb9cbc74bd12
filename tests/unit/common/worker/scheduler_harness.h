#ifndef BATON_TESTS_UNIT_COMMON_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_COMMON_WORKER_SCHEDULER_HARNESS_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "common/worker/scheduler_events.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::toy {

// A worker's scheduler with a toy engine. Checks after every event that the
// ledger balances, that what a step names stays held and that a step writes
// what it clears. `Derived` adds the transfer side:
//   Take(action)    for every action but RunStep and SendEvent,
//   OpenPending()   after the actions of an event, if auto_open,
//   VerifyLinks()   what transfers name is held.
template <class Derived, class Scheduler>
class SchedulerHarness {
 public:
  using Command = typename Scheduler::Command;
  using Message = typename Scheduler::Message;

  explicit SchedulerHarness(Scheduler s) : scheduler(std::move(s)) {}

  void Feed(typename Scheduler::Event event) {
    for (auto& action : scheduler.Handle(std::move(event), now)) {
      std::visit([this](auto&& one) { this->Carry(std::move(one)); },
                 std::move(action));
    }
    if (auto_open) derived().OpenPending();
    Verify();
  }
  void Verify() {
    const BlockPool& pool = scheduler.pool();
    ASSERT_TRUE(pool.Audit().ok()) << pool.Audit();
    if (step.has_value()) {
      for (const PlannedSpan& span : step->spans) {
        for (const BlockRef& block : span.blocks) {
          ASSERT_GE(pool.Holds(block, BlockUse::kRunning), 1u);
        }
      }
    }
    derived().VerifyLinks();
  }

  void OpenSession(uint64_t session) {
    Feed(SessionOpened{SessionId(session)});
  }
  void Send(uint64_t session, Command command) {
    Feed(CommandReceived<Command>{SessionId(session), std::move(command)});
  }
  void FinishStep(const DrawToken& token = AnyToken) {
    ASSERT_TRUE(step.has_value());
    StepPlan plan = *std::exchange(step, std::nullopt);
    Feed(StepDone{plan.number, RunToy(plan, token)});
  }
  void FinishAllSteps(const DrawToken& token = AnyToken) {
    while (step.has_value()) FinishStep(token);
  }
  // Every span of the step in flight fails.
  void FailStep(const absl::Status& status) {
    ASSERT_TRUE(step.has_value());
    StepPlan plan = *std::exchange(step, std::nullopt);
    StepResult result;
    result.spans.resize(plan.spans.size());
    for (size_t i = 0; i < plan.spans.size(); ++i) {
      result.spans[i].status = status;
      if (plan.spans[i].drafted) {
        result.spans[i].guesses =
            static_cast<uint32_t>(plan.spans[i].tokens.size() - 1);
      }
    }
    Feed(StepDone{plan.number, std::move(result)});
  }

  // Events of a session other than load reports, oldest first.
  std::vector<Message> TakeEvents(uint64_t session) {
    return std::exchange(events[SessionId(session)], {});
  }
  // The tokens that the session may have started, as last reported.
  uint64_t Granted(uint64_t session) {
    now += std::chrono::milliseconds(5);
    Feed(Tick{});
    return loads[SessionId(session)].granted_prefill_tokens();
  }
  const Ledger& ledger() const { return scheduler.pool().ledger(); }
  bool AllFree() const { return ledger().free == scheduler.pool().size(); }
  bool AllFreeOrCached() const {
    return ledger().free + ledger()[BlockUse::kPrefix] ==
           scheduler.pool().size();
  }

  Scheduler scheduler;
  MonotonicTime now{std::chrono::hours(1)};
  bool auto_open = true;
  std::optional<StepPlan> step;
  std::map<SessionId, std::vector<Message>> events;
  std::map<SessionId, v1::WorkerLoad> loads;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  template <class Action>
  void Carry(Action action) {
    derived().Take(std::move(action));
  }
  void Carry(SendEvent<Message> action) {
    if (action.event.has_load()) {
      loads[action.session] = action.event.load();
    } else {
      events[action.session].push_back(std::move(action.event));
    }
  }
  void Carry(RunStep action) {
    ASSERT_FALSE(step.has_value()) << "two steps at once";
    step = std::move(action.plan);
    std::set<uint32_t> written;
    std::vector<uint32_t> guesses(step->spans.size());
    for (const PlannedDraft& draft : step->drafts) {
      guesses[draft.span] += draft.count;
    }
    for (size_t i = 0; i < step->spans.size(); ++i) {
      const PlannedSpan& span = step->spans[i];
      const uint32_t end = span.first_position + guesses[i] +
                           static_cast<uint32_t>(span.tokens.size());
      ASSERT_EQ(span.blocks.size(), BlocksFor(end));
      for (size_t b = span.first_position / kBlockTokens;
           b < span.blocks.size(); ++b) {
        ASSERT_TRUE(written.insert(span.blocks[b].id.value()).second)
            << "two spans write one block";
        ASSERT_EQ(scheduler.pool().Holds(span.blocks[b], BlockUse::kRunning),
                  1u)
            << "a shared block is written";
      }
    }
    for (const BlockRef& block : step->cleared) {
      ASSERT_TRUE(written.contains(block.id.value()));
    }
    for (const BlockCopy& copy : step->copies) {
      ASSERT_EQ(scheduler.pool().Holds(copy.to, BlockUse::kRunning), 1u)
          << "a shared block is written";
    }
  }
};

}  // namespace baton::toy

#endif  // BATON_TESTS_UNIT_COMMON_WORKER_SCHEDULER_HARNESS_H_
