#ifndef BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_PREFILL_WORKER_SCHEDULER_HARNESS_H_

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/tokens/prefix_hash.h"
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

  static constexpr char kFingerprint[] = "fingerprint";

  static PrefillOptions Options(uint32_t blocks = 64, uint32_t budget = 32,
                                uint32_t max_attempts = 1024) {
    return {.epoch = WorkerEpoch(7),
            .fingerprint = kFingerprint,
            .blocks = blocks,
            .budget = {.max_tokens = budget},
            .max_attempts = max_attempts,
            .limits = toy::Limits(),
            .vocabulary = toy::MakeVocabulary()};
  }

  struct Transfer {
    TransferOwner owner;
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
  // Asks for the first `blocks` of what `spec` had computed.
  static v1::PushPrefix PushOf(uint64_t attempt, uint64_t landing,
                               const v1::SequenceSpec& spec, uint32_t blocks) {
    std::vector<TokenId> tokens(spec.prompt_token_ids().begin(),
                                spec.prompt_token_ids().end());
    const auto& generated = spec.choices(0).generated_token_ids();
    tokens.insert(tokens.end(), generated.begin(), generated.end());
    tokens.resize(size_t{blocks} * kBlockTokens);
    const PrefixHash last =
        HashPrefixes(PrefixSeed(spec.prefix_salt(), kFingerprint), tokens)
            .back();
    v1::PushPrefix push;
    push.set_attempt_id(attempt);
    push.mutable_ticket()->set_landing_id(landing);
    push.mutable_ticket()->set_token_count(blocks * kBlockTokens);
    push.mutable_ticket()->set_block_count(blocks);
    push.mutable_ticket()->set_timeout_ms(30000);
    push.set_prefix_hash(last.digest.data(), last.digest.size());
    push.set_deadline_ms(20000);
    return push;
  }
  void Push(uint64_t session, v1::PushPrefix push) {
    v1::PrefillCommand command;
    *command.mutable_push() = std::move(push);
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
      Feed(TransferOpened{open.owner, status});
      return;
    }
    const TransferId id(next_transfer++);
    transfers[id] = {open.owner, open.ticket, open.deadline, {},
                     {},         false,       false};
    Feed(TransferOpened{open.owner, id});
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
    std::map<BlockId, uint32_t> sending;
    for (const auto& [id, transfer] : transfers) {
      for (const PushBlock& push : transfer.pushed) {
        ASSERT_TRUE(scheduler.pool().Check(push.block).ok());
        ++sending[push.block.id];
      }
    }
    const bool all_pushed =
        std::none_of(opening.begin(), opening.end(), [](const auto& open) {
          return open.owner.kind == TransferOwner::Kind::kPrefixPush;
        });
    uint32_t cached = 0;
    for (BlockId id(0); id.value() < scheduler.pool().size();
         id = BlockId(id.value() + 1)) {
      const BlockRef block = scheduler.pool().Current(id);
      const uint32_t held = scheduler.pool().Holds(block, BlockUse::kSending);
      ASSERT_GE(held, sending[id]);
      ASSERT_TRUE(held == sending[id] || !all_pushed);
      cached += scheduler.pool().Holds(block, BlockUse::kPrefix);
    }
    ASSERT_EQ(scheduler.prefixes().size(), cached);
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
