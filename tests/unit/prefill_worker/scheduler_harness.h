#ifndef BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "prefill_worker/prefill_scheduler.h"
#include "tests/unit/common/worker/scheduler_harness.h"

namespace baton::prefill {

// A PrefillScheduler with a toy engine and a toy transfer side. Checks also
// that what a transfer names stays held and that transfers are used in the
// order the contract allows.
class SchedulerHarness
    : public toy::SchedulerHarness<SchedulerHarness, PrefillScheduler> {
 public:
  explicit SchedulerHarness(uint32_t blocks = 64, uint32_t budget = 32,
                            uint32_t max_attempts = 1024)
      : SchedulerHarness(Options(blocks, budget, max_attempts)) {}
  explicit SchedulerHarness(PrefillOptions options)
      : toy::SchedulerHarness<SchedulerHarness, PrefillScheduler>(
            PrefillScheduler(std::move(options))) {}

  static PrefillOptions Options(uint32_t blocks = 64, uint32_t budget = 32,
                                uint32_t max_attempts = 1024) {
    return {.epoch = WorkerEpoch(7),
            .blocks = blocks,
            .budget = {.max_tokens = budget},
            .max_attempts = max_attempts,
            .limits = toy::Limits(),
            .vocabulary = toy::MakeVocabulary()};
  }

  struct Transfer {
    JobId job;
    v1::Ticket ticket;
    MonotonicTime deadline;
    std::vector<PushBlock> pushed;
    std::optional<v1::SealContents> seal;
    bool aborted = false;
    bool failed = false;
  };

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
    Send(session, std::move(command));
  }
  void Cancel(uint64_t session, uint64_t attempt) {
    v1::PrefillCommand command;
    command.mutable_cancel()->set_attempt_id(attempt);
    Send(session, std::move(command));
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
  void Acknowledge(TransferId id) {
    const Transfer transfer = transfers.at(id);
    transfers.erase(id);
    Feed(
        transfer::TransferAcked{id, 100 * transfer.pushed.size(),
                                static_cast<uint32_t>(transfer.pushed.size())});
  }
  void Fail(TransferId id, absl::Status why = absl::UnavailableError("link")) {
    transfers.at(id).failed = true;
    Feed(transfer::TransferFailed{id, std::move(why)});
  }
  void CloseTransfer(TransferId id) {
    transfers.erase(id);
    Feed(transfer::TransferClosed{id});
  }

  void OpenPending() {
    while (!opening.empty()) Open();
  }
  void VerifyLinks() {
    for (const auto& [id, transfer] : transfers) {
      for (const PushBlock& push : transfer.pushed) {
        ASSERT_EQ(scheduler.pool().Holds(push.block, BlockUse::kSending), 1u);
      }
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

  std::vector<OpenTransfer> opening;
  std::map<TransferId, Transfer> transfers;
  uint64_t next_transfer = 1;
};

}  // namespace baton::prefill

#endif  // BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_
