#ifndef BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "prefill_worker/prefill_scheduler.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::prefill {

// A PrefillScheduler with a toy engine and a toy transfer side. Checks after
// every event that the ledger balances, that what a step or a transfer names
// stays held, and that transfers are used in the order the contract allows.
class SchedulerHarness {
 public:
  explicit SchedulerHarness(uint32_t blocks = 64, uint32_t budget = 32,
                            uint32_t max_attempts = 1024)
      : scheduler({.epoch = WorkerEpoch(7),
                   .blocks = blocks,
                   .step_token_budget = budget,
                   .max_attempts = max_attempts,
                   .limits = toy::Limits(),
                   .vocabulary = toy::MakeVocabulary()}) {}

  struct Transfer {
    JobId job;
    v1::Ticket ticket;
    MonotonicTime deadline;
    std::vector<PushBlock> pushed;
    std::optional<v1::SealContents> seal;
    bool aborted = false;
    bool failed = false;
  };

  void Feed(Event event) {
    for (Action& action : scheduler.Handle(std::move(event), now)) {
      std::visit([this](auto&& a) { Take(std::move(a)); }, std::move(action));
    }
    while (auto_open && !opening.empty()) Open();
    Verify();
  }
  void Verify() {
    ASSERT_TRUE(scheduler.pool().Audit().ok()) << scheduler.pool().Audit();
    if (step.has_value()) {
      for (const PlannedSpan& span : step->spans) {
        for (const BlockRef& block : span.blocks) {
          ASSERT_GE(scheduler.pool().Holds(block, BlockUse::kRunning), 1u);
        }
      }
    }
    for (const auto& [id, transfer] : transfers) {
      for (const PushBlock& push : transfer.pushed) {
        ASSERT_EQ(scheduler.pool().Holds(push.block, BlockUse::kSending), 1u);
      }
    }
  }

  void Open(absl::Status status = absl::OkStatus()) {
    OpenTransfer open = opening.front();
    opening.erase(opening.begin());
    if (!status.ok()) {
      Feed(TransferOpened{open.job, status});
      return;
    }
    const TransferId id(next_transfer++);
    transfers[id] = {open.job, open.ticket, open.deadline, {},
                     {},       false,       false};
    Feed(TransferOpened{open.job, id});
  }
  void OpenSession(uint64_t session) {
    Feed(SessionOpened{SessionId(session)});
  }
  void Start(uint64_t session, uint64_t attempt, const v1::SequenceSpec& spec,
             uint32_t deadline_ms = 60000) {
    v1::PrefillCommand command;
    v1::StartPrefill& start = *command.mutable_start();
    start.set_attempt_id(attempt);
    *start.mutable_sequence() = spec;
    start.mutable_ticket()->set_token_count(
        static_cast<uint32_t>(ContextTokensOf(spec)));
    start.mutable_ticket()->set_timeout_ms(30000);
    start.set_deadline_ms(deadline_ms);
    Feed(CommandReceived{SessionId(session), command});
  }
  void Cancel(uint64_t session, uint64_t attempt) {
    v1::PrefillCommand command;
    command.mutable_cancel()->set_attempt_id(attempt);
    Feed(CommandReceived{SessionId(session), command});
  }
  void FinishStep(const toy::DrawToken& token = toy::AnyToken) {
    ASSERT_TRUE(step.has_value());
    StepPlan plan = *std::exchange(step, std::nullopt);
    Feed(StepDone{plan.number, toy::RunToy(plan, token)});
  }
  void FinishAllSteps(const toy::DrawToken& token = toy::AnyToken) {
    while (step.has_value()) FinishStep(token);
  }
  void Acknowledge(TransferId id) {
    const Transfer transfer = transfers.at(id);
    transfers.erase(id);
    Feed(
        transfer::TransferAcked{id, 100 * transfer.pushed.size(),
                                static_cast<uint32_t>(transfer.pushed.size())});
  }
  void Fail(TransferId id) {
    transfers.at(id).failed = true;
    Feed(transfer::TransferFailed{id, absl::UnavailableError("link")});
  }
  void CloseTransfer(TransferId id) {
    transfers.erase(id);
    Feed(transfer::TransferClosed{id});
  }

  // Events of a session other than load reports, oldest first.
  std::vector<v1::PrefillEvent> TakeEvents(uint64_t session) {
    return std::exchange(events[SessionId(session)], {});
  }
  const Ledger& ledger() const { return scheduler.pool().ledger(); }
  bool AllFree() const { return ledger().free == scheduler.pool().size(); }

  PrefillScheduler scheduler;
  MonotonicTime now{std::chrono::hours(1)};
  bool auto_open = true;
  std::optional<StepPlan> step;
  std::vector<OpenTransfer> opening;
  std::map<TransferId, Transfer> transfers;
  std::map<SessionId, std::vector<v1::PrefillEvent>> events;
  std::map<SessionId, v1::WorkerLoad> loads;
  uint64_t next_transfer = 1;

 private:
  void Take(RunStep action) {
    ASSERT_FALSE(step.has_value()) << "two steps at once";
    step = std::move(action.plan);
    std::set<uint32_t> written;
    for (const PlannedSpan& span : step->spans) {
      const uint32_t end =
          span.first_position + static_cast<uint32_t>(span.tokens.size());
      ASSERT_EQ(span.blocks.size(), BlocksFor(end));
      for (uint32_t p = span.first_position; p < end; p += 1) {
        written.insert(span.blocks[p / kBlockTokens].id.value());
      }
    }
    for (const BlockRef& block : step->cleared) {
      ASSERT_TRUE(written.contains(block.id.value()));
    }
  }
  void Take(OpenTransfer action) { opening.push_back(std::move(action)); }
  void Take(PushBlock action) {
    Transfer& transfer = transfers.at(action.transfer);
    ASSERT_FALSE(transfer.aborted || transfer.seal.has_value());
    ASSERT_EQ(action.ordinal, transfer.pushed.size());
    transfer.pushed.push_back(action);
  }
  void Take(SealTransfer action) {
    Transfer& transfer = transfers.at(action.transfer);
    ASSERT_FALSE(transfer.aborted || transfer.seal.has_value());
    transfer.seal = std::move(action.seal);
  }
  void Take(AbortTransfer action) {
    Transfer& transfer = transfers.at(action.transfer);
    ASSERT_FALSE(transfer.aborted || transfer.failed);
    transfer.aborted = true;
  }
  void Take(SendEvent action) {
    if (action.event.has_load()) {
      loads[action.session] = action.event.load();
    } else {
      events[action.session].push_back(std::move(action.event));
    }
  }
};

}  // namespace baton::prefill

#endif  // BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_
